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
  auto message = receive_with_descriptors(socket, patience);
  if (!message) return message.error();
  return std::move(message->text);
}

Result<Message> receive_with_descriptors(const Fd& socket, std::chrono::milliseconds patience) {
  if (auto readable = wait_for(socket, POLLIN, patience); !readable) return readable.error();
  Message message{std::string(kLongestMessage, '\0'), {}};
  iovec text{message.text.data(), message.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> room{};
  msghdr header{};
  header.msg_iov = &text;
  header.msg_iovlen = 1;
  header.msg_control = room.data();
  header.msg_controllen = room.size();
  const auto count = ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC);
  if (count < 0) return system_error("cannot read from a process on this machine", errno);
  message.text.resize(static_cast<std::size_t>(count));
  for (auto* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(part) + at, sizeof number);
      message.descriptors.emplace_back(number);
    }
  }
  return message;
}

}  // namespace taas
