#include "base/unix_address.hpp"

#include <cerrno>

namespace taas {

Result<Fd> connect_to_unix(const std::string& path, int type) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  Fd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("cannot make a socket", errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return system_error("cannot connect to " + path, errno);
  }
  return socket;
}

}  // namespace taas
