#include "store/server.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/log/log.hpp"
#include "net/sockets.hpp"
#include "store/connection.hpp"
#include "store/joining.hpp"
#include "store/listeners.hpp"

namespace taas::store {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Accepted at one go, before the clients already there are served again.
constexpr int kAcceptBatch = 256;
/// Until the next try when there is no descriptor left for a client.
constexpr std::chrono::milliseconds kAcceptRetry{50};

bool concerns_one_client(const boost::system::error_code& status) {
  return status == asio::error::connection_aborted || status == asio::error::interrupted;
}

}  // namespace

class Server::Impl final : public ConnectionOwner, public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, std::vector<net::Acceptor> acceptors, const ServerOptions& options, Observer observer)
      : io_(io),
        observer_(std::move(observer)),
        longest_turn_(options.longest_turn),
        budget_(std::make_shared<Budget>(options.most_bytes)),
        backlog_(options.backlog),
        most_clients_(options.most_clients),
        patience_(options.patience),
        crowded_patience_(options.crowded_patience),
        watch_(io) {
    for (auto& acceptor : acceptors) listeners_.push_back({std::move(acceptor), asio::steady_timer(io)});
  }

  void start() {
    for (auto& listener : listeners_) await_clients(listener);
  }

  std::uint16_t port() const {
    boost::system::error_code ignored;
    return listeners_.front().acceptor.local_endpoint(ignored).port();
  }

  int connections() const { return static_cast<int>(connections_.size()); }

  void begin_generation(const std::string& address) {
    log::info(LogPart::kStore, "port {} serves a generation at {}", port(),
              address.empty() ? "all addresses" : address);
    forget();
    serves_ = true;
    boost::system::error_code any;
    served_address_ = asio::ip::make_address(address, any);
  }

  void rest() {
    forget();
    serves_ = false;
  }

  void forget() {
    drop_connections();
    for (auto& listener : listeners_) {
      boost::system::error_code status;
      for (int i = 0; i <= backlog_ && !status; ++i) listener.acceptor.accept(status);  // further ones came after this
    }
    database_ = Database(budget_);
    joined_.clear();
    reached_ = false;
  }

  void shut_down() {
    drop_connections();
    listeners_.clear();
    watch_.cancel();
  }

 private:
  struct Listener {
    net::Acceptor acceptor;
    asio::steady_timer retry;
  };

  std::span<char> read_buffer() override { return read_buffer_; }
  void on_request(Connection& connection, Request&& request) override;
  bool has_time() override;
  void flush_replies() override;
  void on_closed(Connection& connection, const Error* reason) override;

  void await_clients(Listener& listener);
  void accept_clients(Listener& listener);
  void retry_later(Listener& listener);
  bool make_room();
  bool is_served(const tcp::socket& socket) const;
  void add_connection(tcp::socket socket);
  void watch_silent();
  void close_silent();
  void forget_stranger(ClientId client);
  void drop_connections();
  void queue_reply(Reply reply);
  void note_joined(Rank rank);

  asio::io_context& io_;
  Observer observer_;
  std::chrono::milliseconds longest_turn_;
  std::optional<std::chrono::steady_clock::time_point> turn_ends_;  ///< none: clients had nothing of this turn yet
  bool serves_ = true;
  asio::ip::address served_address_;  ///< unspecified: all that are listened on
  std::vector<Listener> listeners_;   ///< never moved once started: handlers refer to its elements
  std::array<char, 64 * 1024> read_buffer_{};
  std::unordered_map<int, std::shared_ptr<Connection>> connections_;  ///< by client id
  std::vector<std::shared_ptr<Connection>> unflushed_;
  std::map<int, Instant> strangers_;  ///< clients that have asked for nothing yet since they came, the oldest first
  std::set<int> silent_;              ///< those of them whose patience is not over
  int next_client_ = 0;
  std::shared_ptr<Budget> budget_;
  int backlog_;
  int most_clients_;
  std::chrono::milliseconds patience_;
  std::chrono::milliseconds crowded_patience_;
  asio::steady_timer watch_;  ///< for the oldest that is silent
  Database database_{budget_};
  std::set<Rank> joined_;
  bool reached_ = false;  ///< by any client of this generation
};

void Server::Impl::await_clients(Listener& listener) {
  listener.acceptor.async_wait(net::Acceptor::wait_read,
                               [weak = weak_from_this(), &listener](const boost::system::error_code& status) {
                                 const auto self = weak.lock();
                                 if (self && !status) self->accept_clients(listener);
                               });
}

void Server::Impl::accept_clients(Listener& listener) {
  for (int i = 0; i < kAcceptBatch; ++i) {
    if (connections() >= most_clients_ && i > 0) break;  // whether one more waits is not known
    if (!make_room()) return retry_later(listener);
    boost::system::error_code status;
    auto socket = listener.acceptor.accept(status);
    if (!status) {
      if (is_served(socket)) add_connection(std::move(socket));
    } else if (status == asio::error::would_block) {
      break;
    } else if (!concerns_one_client(status)) {
      return retry_later(listener);
    }
  }
  await_clients(listener);
}

/// The clients stay in the backlog, and those connected are served.
void Server::Impl::retry_later(Listener& listener) {
  listener.retry.expires_after(kAcceptRetry);
  listener.retry.async_wait([weak = weak_from_this(), &listener](const boost::system::error_code& status) {
    const auto self = weak.lock();
    if (self && !status) self->accept_clients(listener);
  });
}

/// For one more client.
bool Server::Impl::make_room() {
  if (connections() < most_clients_) return true;
  if (strangers_.empty() || steady_now() < strangers_.begin()->second + crowded_patience_) return false;
  connections_.at(strangers_.begin()->first)->close(nullptr);
  return true;
}

bool Server::Impl::is_served(const tcp::socket& socket) const {
  boost::system::error_code status;
  const auto address = socket.local_endpoint(status).address();
  return serves_ && !status && (served_address_.is_unspecified() || address == served_address_);
}

void Server::Impl::add_connection(tcp::socket socket) {
  net::set_close_on_exec(socket.native_handle());
  const ClientId id{next_client_++};
  auto connection = std::make_shared<Connection>(std::move(socket), id, *this, budget_);
  connections_.emplace(id.value, connection);
  log::debug(LogPart::kStore, "client {} has connected, {} are there", id.value, connections());
  strangers_.emplace(id.value, steady_now());
  silent_.insert(id.value);
  if (silent_.size() == 1) watch_silent();
  connection->start();
}

void Server::Impl::watch_silent() {
  if (silent_.empty()) return;
  watch_.expires_at(strangers_.at(*silent_.begin()) + patience_);
  watch_.async_wait([weak = weak_from_this()](const boost::system::error_code& status) {
    const auto self = weak.lock();
    if (self && !status) self->close_silent();
  });
}

void Server::Impl::close_silent() {
  const auto now = steady_now();
  while (!silent_.empty() && strangers_.at(*silent_.begin()) + patience_ <= now) {
    const auto connection = connections_.at(*silent_.begin());
    silent_.erase(silent_.begin());
    if (!connection->has_greeted()) connection->close(nullptr);
  }
  watch_silent();
}

void Server::Impl::forget_stranger(ClientId client) {
  strangers_.erase(client.value);
  silent_.erase(client.value);
}

void Server::Impl::drop_connections() {
  for (const auto& [id, connection] : connections_) connection->abandon();
  connections_.clear();
  strangers_.clear();
  silent_.clear();
  unflushed_.clear();
}

void Server::Impl::on_request(Connection& connection, Request&& request) {
  forget_stranger(connection.id());
  std::optional<Rank> joined;
  if (const auto* set = std::get_if<Set>(&request)) joined = joined_rank(set->key);
  auto replies = database_.apply(connection.id(), std::move(request));
  if (!replies) {
    const auto reason = replies.error();
    return connection.close(&reason);
  }
  for (auto& reply : *replies) queue_reply(std::move(reply));
  if (!std::exchange(reached_, true) && observer_.on_reached) observer_.on_reached();
  if (joined) note_joined(*joined);
}

/// What is posted comes after all that the event loop has found ready before, and after it has looked for more.
bool Server::Impl::has_time() {
  const auto now = std::chrono::steady_clock::now();
  if (turn_ends_) return now < *turn_ends_;
  turn_ends_ = now + longest_turn_;
  asio::post(io_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->turn_ends_.reset();
  });
  return true;
}

void Server::Impl::queue_reply(Reply reply) {
  const auto& connection = connections_.at(reply.client.value);
  if (connection->queue(std::move(reply.pieces))) unflushed_.push_back(connection);
}

void Server::Impl::flush_replies() {
  for (const auto& connection : std::exchange(unflushed_, {})) connection->flush();
}

void Server::Impl::on_closed(Connection& connection, const Error* reason) {
  database_.drop(connection.id());
  forget_stranger(connection.id());
  connections_.erase(connection.id().value);
  log::debug(LogPart::kStore, "client {} is gone{}{}", connection.id().value, reason ? ": " : "",
             reason ? reason->message : "");
  if (reason && observer_.on_refused) observer_.on_refused(*reason);
}

void Server::Impl::note_joined(Rank rank) {
  if (!joined_.insert(rank).second) return;
  log::debug(LogPart::kStore, "rank {} has joined", rank.value);
  if (observer_.on_joined) observer_.on_joined(rank);
}

Result<std::unique_ptr<Server>> Server::listen(asio::io_context& io, const ServerOptions& options, Observer observer) {
  auto acceptors = bind_listeners(io, options);
  if (!acceptors) return acceptors.error();
  auto impl = std::make_shared<Impl>(io, std::move(*acceptors), options, std::move(observer));
  impl->start();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->shut_down(); }

std::uint16_t Server::port() const { return impl_->port(); }
void Server::begin_generation(const std::string& address) { impl_->begin_generation(address); }
void Server::rest() { impl_->rest(); }
int Server::connections() const { return impl_->connections(); }

}  // namespace taas::store
