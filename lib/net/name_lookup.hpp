#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "net/link.hpp"

namespace taas::net {

using OnAddresses = std::function<void(const Result<std::vector<boost::asio::ip::address>>&)>;

/// Asks the system for the addresses of a name, and calls back once, in the event loop. The C library asks name servers
/// for as long as they keep it waiting, cannot be interrupted meanwhile, and holds up neither the event loop nor the
/// end of the process here: each name has a thread of its own. Who asks again while it is at work is told its answer as
/// well. An error with EADDRNOTAVAIL: no address is known for this name, at this moment. Nothing is kept, so that a
/// name that is known later is found.
std::unique_ptr<Connecting> look_up(boost::asio::io_context& io, const std::string& name, OnAddresses on_done);

}  // namespace taas::net
