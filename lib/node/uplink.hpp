#pragma once

#include <memory>

#include "net/link.hpp"
#include "node/agent_loop.hpp"

namespace taas::node {

/// The agent's end of a link: connects, and tells the loop what comes.
std::unique_ptr<Uplink> make_uplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent);

}  // namespace taas::node
