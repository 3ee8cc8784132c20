#include "data/transport/sockets.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace taas::data {

namespace {

using boost::asio::ip::tcp;

constexpr int kStream = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
// The kernel lets its receive buffers grow to more than the caches hold, and what was out there comes back at a third
// of the speed. So much is in the cache still, and enough for 4 GB/s over a round trip of kShortTrip.
constexpr int kReceiveBytes = 4 << 20;
constexpr std::uint32_t kShortTrip = 1000;  // in microseconds

template <class T>
void set(const Fd& socket, int level, int option, const T& value) {
  ::setsockopt(socket.get(), level, option, &value, sizeof value);  // what is refused is not needed
}

Result<tcp::endpoint> endpoint_of(const std::string& address, std::uint16_t port) {
  boost::system::error_code status;
  const auto parsed = boost::asio::ip::make_address(address, status);
  if (status) return usage_error(fmt::format("'{}' is not a numeric address", address));
  return tcp::endpoint(parsed, port);
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return usage_error(fmt::format("'{}' cannot be the path of a socket: it has {} bytes, at most {} are possible",
                                   path, path.size(), sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Where the administrator allows less, the kernel's own choice is the better one.
bool may_have_receive_bytes() {
  const Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set(probe, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  int allowed = 0;
  socklen_t size = sizeof allowed;
  return ::getsockopt(probe.get(), SOL_SOCKET, SO_RCVBUF, &allowed, &size) == 0 && allowed >= 2 * kReceiveBytes;
}

void limit_backlog(const Fd& socket) {
  static const bool allowed = may_have_receive_bytes();
  tcp_info info{};
  socklen_t size = sizeof info;
  const bool known = ::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  if (allowed && known && info.tcpi_rtt <= kShortTrip) set(socket, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
}

/// 0, or why the connection could not be made.
int outcome(const Fd& socket) {
  int status = 0;
  socklen_t size = sizeof status;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &status, &size) == 0 ? status : errno;
}

}  // namespace

void tune_tcp(const Fd& socket) {
  constexpr std::string_view kCubic = "cubic";  // bbr, the default of some machines, paces inside a machine too
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kCubic.data(), kCubic.size());
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 10'000u);
}

Result<Fd> connect_tcp(const std::string& numeric_address, std::uint16_t port, const Wakeup& wakeup,
                       Duration patience) {
  const auto endpoint = endpoint_of(numeric_address, port);
  if (!endpoint) return endpoint.error();
  Fd socket(::socket(endpoint->protocol().family(), kStream, 0));
  if (!socket) return system_error("cannot open a socket", errno);
  tune_tcp(socket);
  const auto where = [&] { return fmt::format("cannot reach {} port {}", numeric_address, port); };
  if (::connect(socket.get(), endpoint->data(), static_cast<socklen_t>(endpoint->size())) != 0) {
    if (errno != EINPROGRESS) return system_error(where(), errno);
    if (!wait_until_ready(socket, Ready::kWrite, wakeup, patience)) return system_error(where(), ETIMEDOUT);
    if (const int status = outcome(socket)) return system_error(where(), status);
  }
  limit_backlog(socket);
  return socket;
}

Result<Fd> connect_unix(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  Fd socket(::socket(AF_UNIX, kStream, 0));
  if (!socket) return system_error("cannot open a socket", errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return system_error(fmt::format("cannot reach {}", path), errno);
  }
  return socket;
}

Fd accept_from(const Fd& listener) {
  return Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool is_same_user(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

Result<Fd> listen_tcp(const std::string& numeric_address, std::uint16_t port) {
  const auto endpoint = endpoint_of(numeric_address, port);
  if (!endpoint) return endpoint.error();
  Fd listener(::socket(endpoint->protocol().family(), kStream, 0));
  set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(listener.get(), endpoint->data(), static_cast<socklen_t>(endpoint->size())) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return system_error(fmt::format("cannot listen on {} port {}", numeric_address, port), errno);
  }
  return listener;
}

Result<std::uint16_t> port_of(const Fd& listener) {
  tcp::endpoint endpoint;
  auto size = static_cast<socklen_t>(endpoint.capacity());
  if (::getsockname(listener.get(), endpoint.data(), &size) != 0) return system_error("a listener has no port", errno);
  endpoint.resize(size);
  return endpoint.port();
}

Result<Fd> listen_unix(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  Fd listener(::socket(AF_UNIX, kStream, 0));
  ::unlink(path.c_str());
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0) {
    return system_error(fmt::format("cannot listen on {}", path), errno);
  }
  return listener;
}

}  // namespace taas::data
