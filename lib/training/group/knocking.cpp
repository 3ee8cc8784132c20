#include "training/group/knocking.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

namespace taas {
namespace {

constexpr int kPatienceMs = 200;
constexpr int kBacklog = 4096;

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses resolve(const std::string& host, std::uint16_t port, int type) {
  addrinfo hints{};
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {found, ::freeaddrinfo};
}

/// This machine's end of a way to the address: connecting a datagram socket sends nothing.
bool local_end(const addrinfo& target, sockaddr_storage& local, socklen_t& size) {
  const Fd fd(::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  size = sizeof local;
  return fd && ::connect(fd.get(), target.ai_addr, target.ai_addrlen) == 0 &&
         ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0;
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  }
}

DoorBell listen_at(const sockaddr_storage& local, socklen_t size) {
  DoorBell bell;
  Fd fd(::socket(local.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&local), size) != 0) return bell;
  if (::listen(fd.get(), kBacklog) != 0) return bell;
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), length, host.data(), host.size(), service.data(),
                    service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return bell;
  }
  bell.address = host.data();
  bell.port = static_cast<std::uint16_t>(std::stoi(service.data()));
  bell.listener = std::move(fd);
  return bell;
}

}  // namespace

DoorBell open_door_bell(const std::string& host, std::uint16_t port) {
  const auto targets = resolve(host, port, SOCK_DGRAM);
  for (const auto* target = targets.get(); target != nullptr; target = target->ai_next) {
    sockaddr_storage local{};
    socklen_t size = 0;
    if (!local_end(*target, local, size)) continue;
    set_port(local, 0);
    if (auto bell = listen_at(local, size); bell.listener) return bell;
  }
  return {};
}

Answer knock(const std::string& address, std::uint16_t port) {
  const auto target = resolve(address, port, SOCK_STREAM);
  if (!target) return Answer::kNone;
  const Fd fd(::socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Answer::kNone;
  if (::connect(fd.get(), target->ai_addr, target->ai_addrlen) == 0) return Answer::kThere;
  if (errno == ECONNREFUSED) return Answer::kRefused;
  pollfd waiting{fd.get(), POLLOUT, 0};
  if (errno != EINPROGRESS || ::poll(&waiting, 1, kPatienceMs) != 1) return Answer::kNone;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return Answer::kThere;
  return error == ECONNREFUSED ? Answer::kRefused : Answer::kNone;
}

}  // namespace taas
