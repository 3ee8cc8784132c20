#include "net/tls/pending_handshakes.hpp"

#include <utility>

#include "base/log/log.hpp"

namespace taas::net {
namespace {

namespace asio = boost::asio;

/// A client of torch's TCPStore begins with the number of its query "validate", TLS with that of a handshake.
constexpr char kStoreQuery = 0;

bool is_store_client(asio::ip::tcp::socket& socket) {
  char first = 1;
  boost::system::error_code status;
  auto count = socket.receive(asio::buffer(&first, 1), asio::ip::tcp::socket::message_peek, status);
  return !status && count == 1 && first == kStoreQuery;
}

}  // namespace

void PendingHandshakes::Stranger::abandon() const {
  boost::system::error_code ignored;
  if (socket) socket->close(ignored);
  if (link) link->abandon();
}

PendingHandshakes::PendingHandshakes(const boost::asio::any_io_executor& executor, std::shared_ptr<Tls> tls,
                                     StrangersOptions options, Callbacks callbacks)
    : tls_(std::move(tls)), options_(options), callbacks_(std::move(callbacks)), timer_(executor) {}

PendingHandshakes::~PendingHandshakes() {
  for (const auto& stranger : waiting_) stranger.abandon();
}

void PendingHandshakes::add(boost::asio::ip::tcp::socket socket) {
  auto owned = std::make_shared<asio::ip::tcp::socket>(std::move(socket));
  const auto place = waiting_.insert(waiting_.end(), {owned, nullptr, std::chrono::steady_clock::now()});
  watch();
  if (!callbacks_.on_store_client) return hear(place);
  std::weak_ptr<asio::ip::tcp::socket> still_there = owned;
  owned->async_wait(asio::ip::tcp::socket::wait_read,
                    [weak = weak_from_this(), place, still_there](const boost::system::error_code& status) {
                      const auto self = weak.lock();
                      if (self && !status && !still_there.expired()) self->hear(place);
                    });
}

void PendingHandshakes::hear(Place place) {
  auto socket = std::move(place->socket);
  if (callbacks_.on_store_client && is_store_client(*socket)) {
    waiting_.erase(place);
    watch();
    callbacks_.on_store_client(std::move(*socket));
    return callbacks_.on_left();
  }
  place->link = std::make_shared<TlsLink>(std::move(*socket), tls_);
  place->link->prove([weak = weak_from_this(), place](const std::string& failure) {
    if (const auto self = weak.lock()) self->leave(place, failure.empty());
  });
}

void PendingHandshakes::leave(Place place, bool proved) {
  auto link = std::move(place->link);
  waiting_.erase(place);
  watch();
  if (proved) {
    callbacks_.on_link(make_link(std::move(link)));
  } else {
    link->abandon();
  }
  callbacks_.on_left();
}

PendingHandshakes::Time PendingHandshakes::first_deadline() const {
  return waiting_.front().since + (full() ? options_.crowded_patience : options_.patience);
}

void PendingHandshakes::watch() {
  timer_.cancel();
  if (waiting_.empty()) return;
  timer_.expires_at(first_deadline());
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& status) {
    const auto self = weak.lock();
    if (self && !status) self->expire();
  });
}

void PendingHandshakes::expire() {
  const auto now = std::chrono::steady_clock::now();
  while (!waiting_.empty() && first_deadline() <= now) {
    log::debug(LogPart::kNet, "a client that has not proved itself in time is turned away");
    waiting_.front().abandon();
    waiting_.pop_front();
  }
  watch();
  callbacks_.on_left();
}

}  // namespace taas::net
