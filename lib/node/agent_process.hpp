#pragma once

#include "node/agent_loop.hpp"
#include "node/bootstrap.hpp"
#include "proc/family/keeper.hpp"

namespace taas::node {

struct AgentProcessOptions {
  Bootstrap bootstrap;
  plan::Machine machine;
  std::function<Result<plan::ResolvedProgram>(const Launch&, plan::Machine&)> resolve;  ///< see AgentLoopOptions
};

/// Supervises this machine's ranks for a coordinator elsewhere, until it is dismissed. Returns the exit code.
Result<int> serve_as_agent(AgentProcessOptions options, Lifeline lifeline);

}  // namespace taas::node
