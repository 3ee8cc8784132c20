#pragma once

#include <boost/asio/io_context.hpp>
#include <vector>

#include "base/error.hpp"
#include "net/bind.hpp"
#include "store/server.hpp"

namespace taas::store {

/// Non-blocking, close-on-exec listeners on one port: for the IPv4 loopback address also on its IPv6 twin,
/// where there is IPv6, so that a client that resolves "localhost" meets nobody else there.
Result<std::vector<net::Acceptor>> bind_listeners(boost::asio::io_context& io, const ServerOptions& options);

}  // namespace taas::store
