#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/host_starter.hpp"
#include "net/secret.hpp"
#include "plan/launch_plan.hpp"
#include "proc/family/keeper.hpp"
#include "run/events/events.hpp"

namespace taas::launch {

/// A job of SLURM whose nodes join the run by themselves: those of ranks, and held, or else the CPU machines.
struct StagedJob {
  std::string id;
  bool data = false;
};

/// A run whose nodes are other processes, on this machine or on others: this process coordinates.
struct RemoteRunOptions {
  plan::LaunchPlan plan;  ///< with all nodes there
  plan::Machine machine;
  run::RunStarted started;  ///< what the journal begins with; its instant is set here
  std::string working_directory;
  net::Secret secret;
  std::vector<std::string> listen_addresses;  ///< numeric; agents try each
  std::uint16_t port = 0;                     ///< 0: the kernel chooses
  std::vector<HostEntry> hosts;               ///< agents that this process starts; others join by themselves
  std::vector<StagedJob> jobs;                ///< at most one of each kind
  /// Told where agents may connect, once that is known and before hosts are started.
  std::function<Result<>(const node::Bootstrap&)> on_listening = [](const node::Bootstrap&) { return Result<>(); };
};

/// How a run ended.
struct RunEnd {
  int exit_code = 0;
  bool told_to_stop = false;  ///< by the user or the batch system, or warned that it soon will be
};

/// An error is of the time before the first agent: nobody has been told of it yet.
Result<RunEnd> coordinate(const RemoteRunOptions& options, Lifeline lifeline);

}  // namespace taas::launch
