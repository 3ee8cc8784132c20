#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// Of a socket that has a name among files. Only so many bytes fit.
inline Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return usage_error(path + ": too long for a socket's path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

/// A connection to the socket with this name among files; `type`: SOCK_STREAM or SOCK_SEQPACKET.
Result<Fd> connect_to_unix(const std::string& path, int type);

/// Whether the other end of a Unix socket is a process of this user.
inline bool is_same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace taas
