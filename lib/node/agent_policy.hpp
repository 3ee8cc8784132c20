#pragma once

#include <chrono>

#include "run/agent/agent.hpp"

namespace taas::node {

/// srun tells all processes of a step what it is told, SIGINT included. Elsewhere in a job a person may be at a
/// terminal. `in_step`: SLURM started this process.
run::EchoPolicy job_echo(bool in_step);

/// An agent fences itself well before the coordinator gives it up.
run::AgentPolicy agent_policy(std::chrono::milliseconds node_timeout, bool in_step);

}  // namespace taas::node
