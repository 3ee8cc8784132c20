#include "net/connect/listener.hpp"

#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/log/log.hpp"
#include "net/bind.hpp"
#include "net/sockets.hpp"
#include "net/tls/pending_handshakes.hpp"

namespace taas::net {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Until the next try when there is no descriptor left for a client.
constexpr std::chrono::milliseconds kAcceptRetry{50};

/// A sixteenth of the descriptors at most: the rest is for those who have proved themselves.
std::size_t most_strangers(int wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return static_cast<std::size_t>(wanted);
  return std::clamp<std::size_t>(limit.rlim_cur / 16, 1, static_cast<std::size_t>(wanted));
}

bool concerns_one_client(const boost::system::error_code& status) {
  return status == asio::error::connection_aborted || status == asio::error::interrupted;
}

struct Door {
  Acceptor acceptor;
  asio::steady_timer retry;
  bool open = false;  ///< an accept is under way
};

class Reception : public std::enable_shared_from_this<Reception> {
 public:
  Reception(asio::io_context& io, std::vector<Acceptor> acceptors, std::function<void(std::unique_ptr<Link>)> on_link,
            std::function<void(tcp::socket)> on_store_client)
      : io_(io), on_link_(std::move(on_link)), on_store_client_(std::move(on_store_client)) {
    for (auto& acceptor : acceptors) doors_.push_back({std::move(acceptor), asio::steady_timer(io)});
  }

  void start(std::shared_ptr<Tls> tls, const ListenOptions& options) {
    const StrangersOptions limits{options.patience, options.crowded_patience, most_strangers(options.most_strangers)};
    PendingHandshakes::Callbacks calls;
    calls.on_link = [weak = weak_from_this()](std::unique_ptr<Link> link) {
      const auto self = weak.lock();
      if (self && !self->closed_) self->on_link_(std::move(link));
    };
    if (on_store_client_) {
      calls.on_store_client = [weak = weak_from_this()](tcp::socket socket) {
        const auto self = weak.lock();
        if (self && !self->closed_) self->on_store_client_(std::move(socket));
      };
    }
    calls.on_left = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->open_doors();
    };
    strangers_ = std::make_shared<PendingHandshakes>(io_.get_executor(), std::move(tls), limits, std::move(calls));
    open_doors();
  }

  /// For good: who is a stranger by now is turned away, and nobody else let in.
  void close() {
    closed_ = true;
    strangers_.reset();
    boost::system::error_code ignored;
    for (auto& door : doors_) door.acceptor.close(ignored);
    for (auto& door : doors_) door.retry.cancel();
  }

  [[nodiscard]] std::uint16_t port() const {
    boost::system::error_code ignored;
    return doors_.front().acceptor.local_endpoint(ignored).port();
  }

 private:
  void open_doors() {
    for (auto& door : doors_) accept(door);
  }

  void accept(Door& door) {
    if (closed_ || door.open || strangers_->full()) return;
    door.open = true;
    door.acceptor.async_accept(
        [self = shared_from_this(), &door](const boost::system::error_code& status, tcp::socket socket) {
          door.open = false;
          if (!self->closed_) self->on_accepted(door, status, std::move(socket));
        });
  }

  void on_accepted(Door& door, const boost::system::error_code& status, tcp::socket socket) {
    if (status && !concerns_one_client(status)) {
      log::info(LogPart::kNet, "no client can be accepted: {}", status.message());
      return retry_later(door);
    }
    if (!status) {
      prepare(socket);
      strangers_->add(std::move(socket));
    }
    accept(door);
  }

  /// The clients stay in the kernel's queue.
  void retry_later(Door& door) {
    door.open = true;
    door.retry.expires_after(kAcceptRetry);
    door.retry.async_wait([self = shared_from_this(), &door](const boost::system::error_code&) {
      door.open = false;
      self->accept(door);
    });
  }

  asio::io_context& io_;
  std::function<void(std::unique_ptr<Link>)> on_link_;
  std::function<void(tcp::socket)> on_store_client_;
  std::vector<Door> doors_;  ///< never moved once started: handlers refer to its elements
  std::shared_ptr<PendingHandshakes> strangers_;
  bool closed_ = false;
};

class TlsListener : public Listener {
 public:
  explicit TlsListener(std::shared_ptr<Reception> reception) : reception_(std::move(reception)) {}
  ~TlsListener() override { reception_->close(); }
  std::uint16_t port() const override { return reception_->port(); }

 private:
  std::shared_ptr<Reception> reception_;
};

}  // namespace

Result<std::unique_ptr<Listener>> Listener::listen(asio::io_context& io, ListenOptions options,
                                                   std::function<void(std::unique_ptr<Link>)> on_link,
                                                   std::function<void(tcp::socket)> on_store_client) {
  auto tls = Tls::make(Role::kServer, std::move(options.secret));
  if (!tls) return tls.error();
  auto acceptors = bind_all(io, {.addresses = options.addresses, .port = options.port});
  if (!acceptors) return acceptors.error();
  auto reception =
      std::make_shared<Reception>(io, std::move(*acceptors), std::move(on_link), std::move(on_store_client));
  reception->start(std::move(*tls), options);
  log::info(LogPart::kNet, "listening on port {} of {}", reception->port(), fmt::join(options.addresses, ", "));
  return std::make_unique<TlsListener>(std::move(reception));
}

}  // namespace taas::net
