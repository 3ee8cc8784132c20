#include "net/strangers.hpp"

#include <utility>

namespace taas::net {

Strangers::Strangers(const boost::asio::any_io_executor& executor, std::shared_ptr<Tls> tls, StrangersOptions options,
                     Callbacks callbacks)
    : tls_(std::move(tls)), options_(options), callbacks_(std::move(callbacks)), timer_(executor) {}

Strangers::~Strangers() {
  for (const auto& stranger : waiting_) stranger.link->abandon();
}

void Strangers::add(boost::asio::ip::tcp::socket socket) {
  auto link = std::make_shared<TlsLink>(std::move(socket), tls_);
  const auto place = waiting_.insert(waiting_.end(), {link, std::chrono::steady_clock::now()});
  link->prove([weak = weak_from_this(), place](const std::string& failure) {
    if (const auto self = weak.lock()) self->leave(place, failure.empty());
  });
  watch();
}

void Strangers::leave(Place place, bool proved) {
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

Strangers::Time Strangers::first_deadline() const {
  return waiting_.front().since + (full() ? options_.crowded_patience : options_.patience);
}

void Strangers::watch() {
  timer_.cancel();
  if (waiting_.empty()) return;
  timer_.expires_at(first_deadline());
  timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& status) {
    const auto self = weak.lock();
    if (self && !status) self->expire();
  });
}

void Strangers::expire() {
  const auto now = std::chrono::steady_clock::now();
  while (!waiting_.empty() && first_deadline() <= now) {
    waiting_.front().link->abandon();
    waiting_.pop_front();
  }
  watch();
  callbacks_.on_left();
}

}  // namespace taas::net
