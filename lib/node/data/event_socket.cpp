#include "node/data/event_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>

#include "base/fd.hpp"

namespace taas::node {
namespace {

constexpr std::size_t kLargest = 65536;
constexpr int kAtOnce = 64;  // datagrams, before the loop turns to others
constexpr int kQueueBytes = 1 << 20;

Result<Fd> bind_datagrams(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return usage_error(path + ": too long for a socket's path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("cannot make a socket", errno);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kQueueBytes, sizeof kQueueBytes);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_error("cannot bind " + path, errno);
  }
  return socket;
}

}  // namespace

struct EventSocket::State : std::enable_shared_from_this<EventSocket::State> {
  State(boost::asio::io_context& io, Fd fd, std::function<void(std::string_view)> callback)
      : socket(io, fd.release()), on_datagram(std::move(callback)) {}

  void wait() {
    socket.async_wait(socket.wait_read, [self = shared_from_this()](boost::system::error_code stopped) {
      if (stopped || !self->on_datagram) return;
      for (int i = 0; i < kAtOnce && self->receive(); ++i) continue;
      if (self->on_datagram) self->wait();
    });
  }

  bool receive() {
    if (!on_datagram) return false;
    auto size = ::recv(socket.native_handle(), buffer.data(), buffer.size(), 0);
    if (size < 0) return false;
    on_datagram({buffer.data(), static_cast<std::size_t>(size)});
    return true;
  }

  boost::asio::posix::stream_descriptor socket;
  std::function<void(std::string_view)> on_datagram;  // none: the owner is gone
  std::array<char, kLargest> buffer{};
};

EventSocket::EventSocket(std::shared_ptr<State> state) : state_(std::move(state)) {}
EventSocket::EventSocket(EventSocket&&) noexcept = default;

EventSocket::~EventSocket() {
  if (!state_) return;
  state_->on_datagram = nullptr;
  boost::system::error_code ignored;
  state_->socket.cancel(ignored);
}

Result<EventSocket> EventSocket::open(boost::asio::io_context& io, const std::string& path,
                                      std::function<void(std::string_view)> on_datagram) {
  auto socket = bind_datagrams(path);
  if (!socket) return socket.error();
  auto state = std::make_shared<State>(io, std::move(*socket), std::move(on_datagram));
  state->wait();
  return EventSocket(std::move(state));
}

void EventSocket::drain() {
  while (state_->receive()) continue;
}

}  // namespace taas::node
