#include "proc/spawn/message_socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace taas {
namespace {

constexpr std::size_t kMostDescriptors = 8;
constexpr std::size_t kLongestMessage = 4096;

Result<> wait_for(const Fd& socket, short events, std::chrono::milliseconds patience) {
  pollfd waited{socket.get(), events, 0};
  int count = 0;
  do count = ::poll(&waited, 1, static_cast<int>(patience.count()));
  while (count < 0 && errno == EINTR);
  if (count > 0) return {};
  return system_error("no answer from a process on this machine", count == 0 ? ETIMEDOUT : errno);
}

}  // namespace

Result<std::pair<Fd, Fd>> make_message_sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("cannot make a socket pair", errno);
  }
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

Result<> send_message(const Fd& socket, std::string_view message, std::span<const int> descriptors,
                      std::chrono::milliseconds patience) {
  iovec text{const_cast<char*>(message.data()), message.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> room{};
  msghdr header{};
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = room.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    auto* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (auto writable = wait_for(socket, POLLOUT, patience); !writable) return writable;
  if (::sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  return system_error("cannot write to a process on this machine", errno);
}

Result<std::string> receive_message(const Fd& socket, std::chrono::milliseconds patience) {
  if (auto readable = wait_for(socket, POLLIN, patience); !readable) return readable.error();
  std::string message(kLongestMessage, '\0');
  auto count = ::recv(socket.get(), message.data(), message.size(), 0);
  if (count < 0) return system_error("cannot read from a process on this machine", errno);
  message.resize(static_cast<std::size_t>(count));
  return message;
}

}  // namespace taas
