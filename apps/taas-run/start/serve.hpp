#pragma once

#include <functional>
#include <string>

#include "base/error.hpp"
#include "node/bootstrap.hpp"
#include "node/launch.hpp"
#include "plan/launch_plan.hpp"
#include "plan/program/program.hpp"

namespace taas::cli {

/// The secret of nodes that join is the launcher's: ranks have no use for it, whatever way they are started.
std::string take_token(plan::Machine& machine);

/// What an agent does with Welcome, and the program that its ranks run.
using Resolve = std::function<Result<plan::ResolvedProgram>(const node::Launch&, plan::Machine&)>;
/// Goes to the user's folder, and looks for the program there.
Result<plan::ResolvedProgram> resolve_here(const node::Launch& launch, plan::Machine& machine);

/// This process goes on as the agent of one node, in a child. Returns the exit code.
Result<int> serve(node::Bootstrap bootstrap, plan::Machine machine, Resolve resolve);
/// For a node on which the user, or a batch system, called taas-run as on the others: its environment is its own, as
/// under torchrun.
Result<int> serve_as_called(node::Bootstrap bootstrap, plan::Machine machine);

/// --as-agent: supervises this machine's ranks for a coordinator that is named on the standard input.
Result<int> run_as_agent(plan::Machine machine);
/// --as-staged-node: the same in a job of a staged submission, where a file tells of the coordinator.
Result<int> run_as_staged_node(const plan::Options& options, plan::Machine machine);

}  // namespace taas::cli
