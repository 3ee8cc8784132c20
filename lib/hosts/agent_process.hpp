#pragma once

#include "hosts/agent_loop.hpp"
#include "hosts/bootstrap.hpp"
#include "proc/keeper.hpp"

namespace taas::hosts {

struct AgentProcessOptions {
  Bootstrap bootstrap;
  plan::Machine machine;
  std::function<Result<plan::ResolvedProgram>(const Launch&, plan::Machine&)> resolve;  ///< see AgentLoopOptions
};

/// Supervises this machine's ranks for a coordinator elsewhere, until it is dismissed. Returns the exit code.
Result<int> serve_as_agent(AgentProcessOptions options, Lifeline lifeline);

}  // namespace taas::hosts
