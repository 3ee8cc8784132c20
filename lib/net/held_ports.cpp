#include "net/held_ports.hpp"

#include <fmt/format.h>

#include "net/sockets.hpp"

namespace taas::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Status = boost::system::error_code;

Status bind_any_port(tcp::socket& socket, const asio::ip::address& address) {
  if (auto status = net::open(socket, address)) return status;
  Status status;
  if (socket.set_option(tcp::socket::reuse_address(true), status)) return status;
  socket.bind({address, 0}, status);
  return status;
}

}  // namespace

Result<HeldPorts> HeldPorts::hold(asio::io_context& io, const std::string& address, int count) {
  Status status;
  const auto where = asio::ip::make_address(address, status);
  if (status) return usage_error(fmt::format("'{}' is not a numeric address", address));
  HeldPorts held;
  for (int i = 0; i < count; ++i) {
    auto& socket = held.sockets_.emplace_back(io);
    if (auto failed = bind_any_port(socket, where)) {
      return system_error(fmt::format("cannot hold {} ports on {} for the servers of ranks", count, address),
                          failed.value());
    }
    held.numbers_.push_back(socket.local_endpoint(status).port());
  }
  return held;
}

}  // namespace taas::net
