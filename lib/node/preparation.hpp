#pragma once

#include <boost/asio/io_context.hpp>

#include "plan/launch_plan.hpp"
#include "proc/family/keeper.hpp"
#include "storage/run_directory.hpp"

namespace taas::node {

/// Should the keeper be killed, everything that this process has started is.
void end_with_keeper(boost::asio::io_context& io, Lifeline& lifeline);

/// The same once the process of --end-with has ended.
Result<> end_with_process(boost::asio::io_context& io, const plan::LaunchPlan& plan);

/// The run's folder as the plan wants it. A rank of another run may start this one: then "latest" stays that one's.
Result<storage::RunDirectory> create_run_folder(const plan::LaunchPlan& plan, const plan::Machine& machine);

}  // namespace taas::node
