#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plan/launch_mode/host_list.hpp"
#include "plan/launch_mode/slurm.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

// The ways onto nodes.

/// All ranks on this machine; more than one node is simulated.
struct OneMachine {};

/// This process coordinates and starts an agent on each host with ssh.
struct OverSsh {
  std::vector<Host> hosts;  ///< in the order of their ranks; never empty
};

/// srun started this process as one of several tasks. The first task of each node is its agent, and that of node 0
/// coordinates; the others have nothing to do.
struct SlurmTask {
  SlurmJob job;
  SlurmStep step;  ///< as job.step
  [[nodiscard]] bool is_leader() const { return step.local_id == 0; }
  [[nodiscard]] bool coordinates() const { return is_leader() && step.node_id == 0; }
};

/// Inside a job, without srun in front: this process coordinates and starts a step of agents.
struct SlurmAllocation {
  SlurmJob job;
};

/// --slurm outside of a job: this command line is submitted; options.slurm says how.
struct SlurmSubmit {};

/// --slurm-staged: this process coordinates nodes of two jobs. One has CPU machines, which prepare --loader; the one
/// of the GPU nodes is held until they have.
struct SlurmStaged {
  std::string held_job;         ///< empty: both are to be submitted
  std::optional<SlurmJob> job;  ///< of the CPU machines, where this process is in it
};

/// torchrun's way: the same command runs on every node, and they meet at an address.
struct Join {
  std::string host;              ///< a name or an address, IPv6 without brackets
  std::uint16_t port = 0;        ///< never 0
  std::optional<int> node_rank;  ///< 0 coordinates; absent: whoever has the address
  std::optional<bool> is_host;   ///< as said by --rdzv-conf is_host, where node_rank is absent
  std::string rendezvous_id;     ///< separates runs that meet at the same address; may be empty
  int min_nodes = 1;
  int max_nodes = 1;
};

using LaunchMode = std::variant<OneMachine, OverSsh, SlurmTask, SlurmAllocation, SlurmSubmit, SlurmStaged, Join>;

/// One line for people: "4 hosts over ssh".
std::string describe(const LaunchMode& mode);

}  // namespace taas::plan
