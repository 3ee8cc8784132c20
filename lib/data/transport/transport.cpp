#include "data/transport/transport.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

#include "data/transport/receive_low_watermark.hpp"

namespace taas::data {

namespace {

constexpr std::size_t kMostDescriptors = 16;  // of one message; more are closed by the kernel

Error closed() { return unavailable_error("the peer closed the link"); }

bool is_later(int status) { return status == EAGAIN || status == EWOULDBLOCK || status == EINTR; }

Result<std::size_t> explain(ssize_t done) {
  if (done >= 0) return static_cast<std::size_t>(done);
  if (is_later(errno)) return std::size_t{0};
  if (errno == EPIPE || errno == ECONNRESET) return closed();
  return system_error("the link failed", errno);
}

msghdr message_of(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return message;
}

class SocketTransport : public Transport {
 public:
  explicit SocketTransport(Fd socket) : socket_(std::move(socket)) {}

  Result<std::size_t> read(std::span<std::byte> into) override {
    const auto got = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (got == 0 && !into.empty()) return closed();
    return explain(got);
  }
  Result<std::size_t> write(std::span<const iovec> parts) override {
    const auto message = message_of(parts);
    return explain(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL));
  }
  void expect(std::size_t bytes) override { low_water_.expect(socket_, bytes); }
  [[nodiscard]] const Fd& socket() const override { return socket_; }

 protected:
  Fd socket_;
  ReceiveLowWatermark low_water_;
};

/// Bytes do not change inside a machine, and descriptors travel with them.
class UnixTransport : public SocketTransport {
 public:
  using SocketTransport::SocketTransport;

  Result<std::size_t> read(std::span<std::byte> into) override {
    const std::array<iovec, 1> parts{iovec{into.data(), into.size()}};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> control{};
    auto message = message_of(parts);
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (got > 0) keep_descriptors(message);
    if (got == 0 && !into.empty()) return closed();
    return explain(got);
  }

  Result<std::size_t> write_with(const Fd& descriptor, std::span<const iovec> parts) override {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    auto message = message_of(parts);
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = descriptor.get();
    std::memcpy(CMSG_DATA(header), &number, sizeof number);
    return explain(::sendmsg(socket_.get(), &message, MSG_NOSIGNAL));
  }

  Fd take_descriptor() override {
    if (descriptors_.empty()) return {};
    Fd first = std::move(descriptors_.front());
    descriptors_.pop_front();
    return first;
  }
  [[nodiscard]] bool needs_checksum() const override { return false; }
  void expect(std::size_t) override {}

 private:
  void keep_descriptors(msghdr& message) {
    for (auto* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof number);
        Fd received(number);
        if (descriptors_.size() < kMostDescriptors) descriptors_.push_back(std::move(received));
      }
    }
  }

  std::deque<Fd> descriptors_;
};

}  // namespace

Result<std::size_t> Transport::write_with(const Fd&, std::span<const iovec>) {
  return protocol_error("a descriptor cannot be sent to another machine");
}

std::unique_ptr<Transport> make_tcp_transport(Fd socket) {
  return std::make_unique<SocketTransport>(std::move(socket));
}

std::unique_ptr<Transport> make_unix_transport(Fd socket) { return std::make_unique<UnixTransport>(std::move(socket)); }

}  // namespace taas::data
