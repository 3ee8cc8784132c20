#include "store/server.hpp"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "store/connection.hpp"
#include "store/database.hpp"
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
  Impl(asio::io_context& io, std::vector<Acceptor> acceptors, Observer observer) : observer_(std::move(observer)) {
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

  void begin_generation() {
    drop_connections();
    for (auto& listener : listeners_) {
      boost::system::error_code status;
      while (!status) listener.acceptor.accept(status);
    }
    database_ = Database();
    joined_.clear();
  }

  void shut_down() {
    drop_connections();
    listeners_.clear();
  }

 private:
  struct Listener {
    Acceptor acceptor;
    asio::steady_timer retry;
  };

  std::span<char> read_buffer() override { return read_buffer_; }
  void on_request(Connection& connection, Request&& request) override;
  void flush_replies() override;
  void on_closed(Connection& connection, const Error* reason) override;

  void await_clients(Listener& listener);
  void accept_clients(Listener& listener);
  void retry_later(Listener& listener);
  void add_connection(tcp::socket socket);
  void drop_connections();
  void queue_reply(const Reply& reply);
  void note_joined(Rank rank);

  Observer observer_;
  std::vector<Listener> listeners_;  ///< never moved once started: handlers refer to its elements
  std::array<char, 64 * 1024> read_buffer_{};
  std::unordered_map<int, std::shared_ptr<Connection>> connections_;  ///< by client id
  std::vector<std::shared_ptr<Connection>> unflushed_;
  int next_client_ = 0;
  Database database_;
  std::set<Rank> joined_;
};

void Server::Impl::await_clients(Listener& listener) {
  listener.acceptor.async_wait(Acceptor::wait_read,
                               [weak = weak_from_this(), &listener](const boost::system::error_code& status) {
                                 const auto self = weak.lock();
                                 if (self && !status) self->accept_clients(listener);
                               });
}

void Server::Impl::accept_clients(Listener& listener) {
  for (int i = 0; i < kAcceptBatch; ++i) {
    boost::system::error_code status;
    auto socket = listener.acceptor.accept(status);
    if (!status) {
      add_connection(std::move(socket));
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

void Server::Impl::add_connection(tcp::socket socket) {
  set_close_on_exec(socket.native_handle());
  const ClientId id{next_client_++};
  auto connection = std::make_shared<Connection>(std::move(socket), id, *this);
  connections_.emplace(id.value, connection);
  connection->start();
}

void Server::Impl::drop_connections() {
  for (const auto& [id, connection] : connections_) connection->abandon();
  connections_.clear();
  unflushed_.clear();
}

void Server::Impl::on_request(Connection& connection, Request&& request) {
  std::optional<Rank> joined;
  if (const auto* set = std::get_if<Set>(&request)) joined = joined_rank(set->key);
  const auto replies = database_.apply(connection.id(), std::move(request));
  if (!replies) {
    const auto reason = replies.error();
    return connection.close(&reason);
  }
  for (const auto& reply : *replies) queue_reply(reply);
  if (joined) note_joined(*joined);
}

void Server::Impl::queue_reply(const Reply& reply) {
  const auto& connection = connections_.at(reply.client.value);
  if (connection->queue(reply.bytes)) unflushed_.push_back(connection);
}

void Server::Impl::flush_replies() {
  for (const auto& connection : std::exchange(unflushed_, {})) connection->flush();
}

void Server::Impl::on_closed(Connection& connection, const Error* reason) {
  database_.drop(connection.id());
  connections_.erase(connection.id().value);
  if (reason && observer_.on_refused) observer_.on_refused(*reason);
}

void Server::Impl::note_joined(Rank rank) {
  if (joined_.insert(rank).second && observer_.on_joined) observer_.on_joined(rank);
}

Result<std::unique_ptr<Server>> Server::listen(asio::io_context& io, const ServerOptions& options, Observer observer) {
  auto acceptors = bind_listeners(io, options);
  if (!acceptors) return acceptors.error();
  auto impl = std::make_shared<Impl>(io, std::move(*acceptors), std::move(observer));
  impl->start();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->shut_down(); }

std::uint16_t Server::port() const { return impl_->port(); }
void Server::begin_generation() { impl_->begin_generation(); }
int Server::connections() const { return impl_->connections(); }

}  // namespace taas::store
