#pragma once

#include <memory>

#include "hosts/agent_loop.hpp"
#include "hosts/run_loop.hpp"
#include "net/link.hpp"
#include "net/listener.hpp"

namespace taas::hosts {

/// The agent's end of a link: connects, and tells the loop what comes.
std::unique_ptr<Uplink> make_uplink(boost::asio::io_context& io, net::ConnectOptions options, AgentLoop& agent);

/// Lets an agent that has connected take part in the run.
void admit(std::unique_ptr<net::Link> link, RunLoop& run);

}  // namespace taas::hosts
