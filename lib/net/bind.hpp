#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::net {

using Acceptor = boost::asio::ip::tcp::acceptor;

struct BindRequest {
  std::vector<std::string> addresses;  ///< numeric ones of this machine
  std::uint16_t port = 0;              ///< the same on all of them; 0: the kernel chooses
  int backlog = Acceptor::max_listen_connections;
  bool some_suffice = false;  ///< an address that this machine does not have is an error only if no other is left
  std::string purpose = "for other nodes";                                   ///< in errors
  std::string another_port = "choose another port, or none for a free one";  ///< in errors: what a user can do
};

/// Close-on-exec listeners on all of the addresses.
Result<std::vector<Acceptor>> bind_all(boost::asio::io_context& io, const BindRequest& request);

}  // namespace taas::net
