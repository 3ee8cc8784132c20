#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <vector>

#include "base/error.hpp"
#include "store/server.hpp"

namespace taas::store {

using Acceptor = boost::asio::ip::tcp::acceptor;

/// Non-blocking, close-on-exec listeners on one port: for the IPv4 loopback address also on its IPv6 twin,
/// where there is IPv6, so that a client that resolves "localhost" meets nobody else there.
Result<std::vector<Acceptor>> bind_listeners(boost::asio::io_context& io, const ServerOptions& options);

void set_close_on_exec(int native_handle);

}  // namespace taas::store
