#include "store/connection.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <utility>

namespace taas::store {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Past this many unsent bytes no further request of the client is handled.
constexpr std::size_t kMaxUnsent = 1024 * 1024;
/// An empty buffer keeps at most this, so that thousands of clients stay cheap.
constexpr std::size_t kMaxSpare = 4 * 1024;

void empty_out(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kMaxSpare) buffer.shrink_to_fit();
}

bool means_later(const boost::system::error_code& status) {
  return status == asio::error::would_block || status == asio::error::interrupted;
}

}  // namespace

Connection::Connection(tcp::socket socket, ClientId id, ConnectionOwner& owner)
    : socket_(std::move(socket)), id_(id), owner_(&owner) {
  boost::system::error_code status;  // a socket that has died meanwhile says so at the first read
  socket_.non_blocking(true, status);
  socket_.set_option(tcp::no_delay(true), status);
}

bool Connection::queue(std::string_view bytes) {
  const bool first = unsent_.empty();
  unsent_ += bytes;
  return first;
}

void Connection::flush() {
  if (!owner_ || awaits_writable_) return;
  while (sent_ < unsent_.size()) {
    boost::system::error_code status;
    sent_ += socket_.write_some(asio::buffer(unsent_.data() + sent_, unsent_.size() - sent_), status);
    if (means_later(status)) return await_writable();
    if (status) return close(nullptr);
  }
  sent_ = 0;
  empty_out(unsent_);
}

void Connection::close(const Error* reason) {
  if (!owner_) return;
  auto* owner = owner_;
  abandon();
  owner->on_closed(*this, reason);
}

void Connection::abandon() {
  owner_ = nullptr;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void Connection::await_readable() {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const boost::system::error_code&) {
    if (self->owner_) self->on_readable();
  });
}

void Connection::await_writable() {
  awaits_writable_ = true;
  if (sent_ > kMaxUnsent) unsent_.erase(0, std::exchange(sent_, 0));
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const boost::system::error_code&) {
    if (self->owner_) self->on_writable();
  });
}

void Connection::on_readable() {
  const auto buffer = owner_->read_buffer();
  boost::system::error_code status;
  const auto size = socket_.read_some(asio::buffer(buffer.data(), buffer.size()), status);
  if (means_later(status)) return await_readable();
  if (status) return close(nullptr);
  handle({buffer.data(), size});
}

void Connection::on_writable() {
  awaits_writable_ = false;
  flush();
  if (!owner_ || unread_.empty() || !may_handle()) return;
  const auto bytes = std::exchange(unread_, {});
  handle(bytes);
}

bool Connection::may_handle() const { return owner_ && unsent_.size() - sent_ <= kMaxUnsent; }

/// Exactly one of these holds afterwards: the connection is closed, it awaits more bytes, or it awaits that the client
/// reads its replies and keeps the bytes not yet handled.
void Connection::handle(std::string_view bytes) {
  do {
    handle_some(bytes);
    if (owner_) owner_->flush_replies();
  } while (!bytes.empty() && may_handle());
  if (!owner_) return;
  unread_ = bytes;
  if (bytes.empty()) await_readable();
}

void Connection::handle_some(std::string_view& bytes) {
  while (may_handle()) {
    auto request = parser_.next(bytes);
    if (!request) {
      const auto reason = request.error();
      return close(&reason);
    }
    if (!*request) return;
    owner_->on_request(*this, std::move(**request));
  }
}

}  // namespace taas::store
