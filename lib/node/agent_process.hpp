#pragma once

#include <boost/asio/ip/address.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "node/agent_loop.hpp"
#include "node/bootstrap.hpp"
#include "proc/family/keeper.hpp"

namespace taas::node {

struct AgentProcessOptions {
  Bootstrap bootstrap;
  plan::Machine machine;
  std::function<Result<plan::ResolvedProgram>(const Launch&, plan::Machine&)> resolve;  ///< see AgentLoopOptions
  /// Told before each attempt, until there was a link, what the coordinator's name stands for at this moment. True:
  /// nobody is to be looked for any more. Empty: as if it were false.
  std::function<bool(const std::vector<boost::asio::ip::address>&)> takes_over{};
};

/// Supervises this machine's ranks for a coordinator elsewhere, until it is dismissed. Returns the exit code; nothing
/// where takes_over() was true.
Result<std::optional<int>> serve_as_agent(AgentProcessOptions options, Lifeline lifeline);

}  // namespace taas::node
