#include "net/connect/attempt.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "net/sockets.hpp"

namespace taas::net {

using boost::system::error_code;

Attempt::Attempt(boost::asio::io_context& io, std::shared_ptr<Tls> tls, OnEnd on_end)
    : tls_(std::move(tls)), on_end_(std::move(on_end)), socket_(io) {}

void Attempt::start(const boost::asio::ip::tcp::endpoint& endpoint) {
  auto handler = [self = shared_from_this()](const error_code& status) {
    if (self->on_end_) self->on_connected(status);
  };
  if (const auto status = open(socket_, endpoint.address())) {
    boost::asio::post(socket_.get_executor(), [handler, status] { handler(status); });
  } else {
    socket_.async_connect(endpoint, handler);
  }
}

void Attempt::on_connected(const error_code& status) {
  if (status) return end(nullptr, explain(status));
  link_ = std::make_shared<TlsLink>(std::move(socket_), tls_);
  link_->prove([self = shared_from_this()](const std::string& failure) {
    if (!self->on_end_) return;
    auto link = std::exchange(self->link_, nullptr);
    if (!failure.empty()) std::exchange(link, nullptr)->abandon();
    self->end(std::move(link), failure);
  });
}

void Attempt::end(std::shared_ptr<TlsLink> link, const std::string& failure) {
  std::exchange(on_end_, nullptr)(std::move(link), failure);
}

void Attempt::cancel() {
  on_end_ = nullptr;
  error_code ignored;
  socket_.close(ignored);
  if (link_) std::exchange(link_, nullptr)->abandon();
}

}  // namespace taas::net
