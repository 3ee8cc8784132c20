#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::net {

using Acceptor = boost::asio::ip::tcp::acceptor;

/// Close-on-exec listeners on all of these numeric addresses, with one port for all of them; 0: the kernel chooses.
Result<std::vector<Acceptor>> bind_all(boost::asio::io_context& io, const std::vector<std::string>& addresses,
                                       std::uint16_t port);

}  // namespace taas::net
