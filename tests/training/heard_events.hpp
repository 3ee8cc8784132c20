#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "base/fd.hpp"

namespace taas::test {

/// The launcher's end of TAAS_EVENTS, for this process and its data workers.
class HeardEvents {
 public:
  HeardEvents() {
    if (::mkdtemp(folder_) == nullptr) throw std::runtime_error("no folder for a socket");
    const std::string path = std::string(folder_) + "/events";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    bool bound = ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (!bound) throw std::runtime_error("no socket at " + path);
    constexpr timeval kDeadline{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kDeadline, sizeof kDeadline);
    ::setenv("TAAS_EVENTS", path.c_str(), 1);
  }
  HeardEvents(const HeardEvents&) = delete;
  HeardEvents& operator=(const HeardEvents&) = delete;
  ~HeardEvents() {
    ::unsetenv("TAAS_EVENTS");
    std::filesystem::remove_all(folder_);
  }

  /// Null when nothing was said.
  boost::json::value hear() { return receive(MSG_DONTWAIT); }
  /// Null when nothing is said for a minute.
  boost::json::value wait() { return receive(0); }

 private:
  boost::json::value receive(int flags) {
    char text[4096];
    const auto size = ::recv(socket_.get(), text, sizeof text, flags);
    return size < 0 ? boost::json::value() : boost::json::parse({text, static_cast<std::size_t>(size)});
  }

  char folder_[32] = "/tmp/taas-events-XXXXXX";
  Fd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

}  // namespace taas::test
