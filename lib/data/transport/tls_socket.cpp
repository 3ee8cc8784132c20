#include "data/transport/tls_socket.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace taas::data {

namespace {

constexpr std::size_t kTlsBufferBytes = std::size_t{256} << 10;

bool is_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

TlsSocket& self(BIO* bio) { return *static_cast<TlsSocket*>(::BIO_get_data(bio)); }

}  // namespace

TlsSocket::TlsSocket(Fd socket) : socket_(std::move(socket)), in_(kTlsBufferBytes), out_(kTlsBufferBytes) {}

BIO_METHOD* TlsSocket::method() {
  static BIO_METHOD* const made = [] {
    auto* fresh = ::BIO_meth_new(BIO_TYPE_SOURCE_SINK | ::BIO_get_new_index(), "taas socket");
    ::BIO_meth_set_read(fresh, &TlsSocket::read);
    ::BIO_meth_set_write(fresh, &TlsSocket::write);
    ::BIO_meth_set_ctrl(fresh, &TlsSocket::control);
    return fresh;
  }();
  return made;
}

BIO* TlsSocket::make_bio() {
  BIO* bio = ::BIO_new(method());
  if (!bio) return nullptr;
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  return bio;
}

int TlsSocket::read(BIO* bio, char* into, int size) {
  auto& socket = self(bio);
  ::BIO_clear_retry_flags(bio);
  if (socket.in_begin_ == socket.in_end_) {
    const auto got = ::recv(socket.socket_.get(), socket.in_.data(), socket.in_.size(), 0);
    if (got < 0 && is_later()) ::BIO_set_retry_read(bio);
    if (got <= 0) return static_cast<int>(got);
    socket.in_begin_ = 0;
    socket.in_end_ = static_cast<std::size_t>(got);
  }
  const auto given = std::min(socket.in_end_ - socket.in_begin_, static_cast<std::size_t>(size));
  std::memcpy(into, socket.in_.data() + socket.in_begin_, given);
  socket.in_begin_ += given;
  return static_cast<int>(given);
}

int TlsSocket::write(BIO* bio, const char* bytes, int size) {
  auto& socket = self(bio);
  ::BIO_clear_retry_flags(bio);
  if (socket.out_end_ == socket.out_.size() && !socket.flush()) return -1;
  const auto taken = std::min(socket.out_.size() - socket.out_end_, static_cast<std::size_t>(size));
  if (taken == 0) {
    ::BIO_set_retry_write(bio);
    return -1;
  }
  std::memcpy(socket.out_.data() + socket.out_end_, bytes, taken);
  socket.out_end_ += taken;
  return static_cast<int>(taken);
}

bool TlsSocket::flush() {
  while (!is_flushed()) {
    const auto sent = ::send(socket_.get(), out_.data() + out_begin_, out_end_ - out_begin_, MSG_NOSIGNAL);
    if (sent < 0) return is_later();
    out_begin_ += static_cast<std::size_t>(sent);
  }
  out_begin_ = out_end_ = 0;
  return true;
}

/// Of all commands only the one at the end of a flight of the handshake matters.
long TlsSocket::control(BIO* bio, int command, long, void*) {
  if (command != BIO_CTRL_FLUSH) return 0;
  auto& socket = self(bio);
  ::BIO_clear_retry_flags(bio);
  if (!socket.flush()) return -1;
  if (socket.is_flushed()) return 1;
  ::BIO_set_retry_write(bio);
  return -1;
}

}  // namespace taas::data
