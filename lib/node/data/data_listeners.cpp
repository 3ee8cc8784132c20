#include "node/data/data_listeners.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/bind.hpp"

namespace taas::node {
namespace {

Result<Fd> listen_on_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return usage_error(path + ": too long for a socket's path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("cannot make a socket", errno);
  bool bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (!bound || ::listen(socket.get(), SOMAXCONN) != 0) return system_error("cannot listen on " + path, errno);
  return socket;
}

}  // namespace

Result<DataListeners> open_data_listeners(boost::asio::io_context& io, const std::string& address,
                                          std::string unix_path) {
  auto bound = net::bind_all(io, {.addresses = {address}});
  if (!bound) return bound.error();
  auto stream = listen_on_path(unix_path);
  if (!stream) return stream.error();
  DataListeners listeners;
  listeners.port = bound->front().local_endpoint().port();
  listeners.tcp = Fd(bound->front().release());
  listeners.unix_stream = std::move(*stream);
  listeners.unix_path = std::move(unix_path);
  return listeners;
}

}  // namespace taas::node
