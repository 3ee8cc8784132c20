#include "store/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace taas::store {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Past this many unsent bytes no further request of the client is handled.
constexpr std::size_t kMaxUnsent = 1024 * 1024;
/// Sent at one go, before other clients have their turn: a client that reads as fast as it is written to would keep
/// the server for as long as its reply is large.
constexpr std::size_t kMostAtOnce = 4 * 1024 * 1024;
/// Who holds no more than this is not closed for what others hold.
constexpr std::size_t kSmallShare = 64 * 1024;

bool means_later(const boost::system::error_code& status) {
  return status == asio::error::would_block || status == asio::error::interrupted;
}

}  // namespace

Connection::Connection(tcp::socket socket, ClientId id, ConnectionOwner& owner, std::shared_ptr<Budget> budget)
    : socket_(std::move(socket)), id_(id), owner_(&owner), share_(std::move(budget)) {
  boost::system::error_code status;  // a socket that has died meanwhile says so at the first read
  socket_.non_blocking(true, status);
  socket_.set_option(tcp::no_delay(true), status);
}

bool Connection::queue(std::vector<Piece> pieces) {
  const bool first = unsent_.empty();
  for (auto& piece : pieces) {
    unsent_bytes_ += piece.size();
    reply_bytes_ += piece.bytes.size();
    if (!unsent_.empty() && !unsent_.back().value) {
      unsent_.back().bytes += piece.bytes;
      unsent_.back().value = std::move(piece.value);
    } else {
      reply_bytes_ += sizeof(Piece);
      unsent_.push_back(std::move(piece));
    }
  }
  return first;
}

void Connection::flush() {
  if (!owner_ || awaits_writable_) return;
  for (std::size_t written = 0; unsent_bytes_ > 0;) {
    if (written >= kMostAtOnce) return await_writable();
    const auto status = write_some(written);
    if (means_later(status)) return await_writable();
    if (status) return close(nullptr);
  }
  unsent_.clear();
  sent_ = reply_bytes_ = 0;
}

/// Of the first piece, with what is left of its value.
boost::system::error_code Connection::write_some(std::size_t& written) {
  const auto& piece = unsent_.front();
  const std::string_view value = piece.value ? std::string_view(piece.value->bytes) : std::string_view();
  const auto bytes = std::string_view(piece.bytes).substr(std::min(sent_, piece.bytes.size()));
  const auto rest = value.substr(sent_ - std::min(sent_, piece.bytes.size()));
  const std::array<asio::const_buffer, 2> buffers{asio::buffer(bytes), asio::buffer(rest)};
  boost::system::error_code status;
  const auto sent = socket_.write_some(buffers, status);
  drop_sent(sent);
  written += sent;
  return status;
}

void Connection::drop_sent(std::size_t bytes) {
  unsent_bytes_ -= bytes;
  sent_ += bytes;
  if (sent_ < unsent_.front().size()) return;
  reply_bytes_ -= sizeof(Piece) + unsent_.front().bytes.size();
  unsent_.pop_front();
  sent_ = 0;
}

void Connection::hold() { share_.set(parser_.held() + unread_.size() + reply_bytes_); }

/// Closes the connection where its share is one that the budget has no room for.
void Connection::count() {
  hold();
  const auto& budget = *share_.budget();
  if (!owner_ || !budget.is_exceeded() || share_.bytes() <= kSmallShare) return;
  const auto reason = unavailable_error(
      fmt::format("a client holds {} bytes where the store holds at most {} for all", share_.bytes(), budget.most()));
  close(&reason);
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
  unsent_.clear();
  unsent_bytes_ = 0;
  parser_ = {};
  share_.set(0);
}

void Connection::await_readable() {
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](const boost::system::error_code&) {
    if (self->owner_) self->on_readable();
  });
}

void Connection::await_writable() {
  awaits_writable_ = true;
  socket_.async_wait(tcp::socket::wait_write, [self = shared_from_this()](const boost::system::error_code&) {
    if (self->owner_) self->on_writable();
  });
}

void Connection::on_readable() {
  if (!owner_->has_time()) return go_on_later();
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
  count();
  if (owner_ && !unread_.empty()) go_on_later();
}

void Connection::go_on_later() {
  if (std::exchange(goes_on_later_, true)) return;
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->goes_on_later_ = false;
    if (self->owner_) self->go_on();
  });
}

/// With what was read before, or by reading.
void Connection::go_on() {
  if (unread_.empty()) return on_readable();
  if (!may_handle()) return;  // goes on when the client has read
  if (!owner_->has_time()) return go_on_later();
  const auto bytes = std::exchange(unread_, {});
  handle(bytes);
}

bool Connection::may_handle() const { return owner_ && unsent_bytes_ <= kMaxUnsent; }

/// Exactly one of these holds afterwards: the connection is closed, it awaits more bytes, or it keeps the bytes not yet
/// handled and awaits that the client reads its replies, or the next turn.
void Connection::handle(std::string_view bytes) {
  do {
    handle_some(bytes);
    if (owner_) owner_->flush_replies();
    if (owner_) count();
  } while (!bytes.empty() && may_handle() && owner_->has_time());
  if (!owner_) return;
  unread_ = bytes;
  count();
  if (!owner_) return;
  if (bytes.empty()) return await_readable();
  if (may_handle()) go_on_later();
}

void Connection::handle_some(std::string_view& bytes) {
  while (may_handle()) {
    auto request = parser_.next(bytes);
    if (!request) {
      const auto reason = request.error();
      return close(&reason);
    }
    if (!*request) return;
    hold();  // what came is the request's now, which may ask for room to keep it
    owner_->on_request(*this, std::move(**request));
    if (owner_ && !owner_->has_time()) return;
  }
}

}  // namespace taas::store
