#pragma once

#include <memory>

#include "hosts/agent_loop.hpp"
#include "net/connect.hpp"

namespace taas::hosts {

/// The agent's end of a link: connects, and tells the loop what comes.
std::unique_ptr<Uplink> make_uplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent);

}  // namespace taas::hosts
