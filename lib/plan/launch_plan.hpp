#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "plan/environment/rank_environment.hpp"
#include "plan/launch_mode/launch_mode.hpp"
#include "plan/options/launch_settings.hpp"
#include "plan/options/options.hpp"
#include "plan/sizes/data_machines.hpp"
#include "plan/sizes/node_counts.hpp"

namespace taas::plan {

/// One machine, or a simulated one on this machine. Of a run over several machines this is the full world: which
/// machine really is which node is known when the run starts.
struct NodePlan {
  NodeIndex index;
  std::string hostname;  ///< empty: not known yet
  bool simulated = false;
  Rank first_rank;
  int local_world_size = 0;
};

/// Which of a rank's streams go where, after -r, -t and --local-ranks-filter. The files hold everything, always.
struct RankOutput {
  bool stdout_on_console = false;
  bool stderr_on_console = false;
};

/// Everything about a launch that can be decided without doing it.
struct LaunchPlan {
  std::string run_id;  ///< --rdzv-id where it counts, else the one given to make_plan()
  LaunchMode launch_mode;
  std::optional<SlurmJob> job;  ///< that this process is in, whatever the way
  Device device = Device::kCpu;
  std::vector<NodePlan> nodes;
  std::vector<std::string> hosts;   ///< all that are asked, spares too, where their names are known beforehand
  std::vector<RankPlace> ranks;     ///< ranks[i].rank.value == i
  std::vector<RankOutput> outputs;  ///< by rank
  DataMachines data;                ///< none without --cpus
  int min_nodes = 1;                ///< as in NodeCounts, with the two below
  int spares = 0;
  int expected_agents = 1;
  bool nodes_count_themselves = false;  ///< nodes that join have as many ranks as their own GPUs or cores; `nodes` are
                                        ///< as if all were like this one
  std::vector<std::string> notices;     ///< one line each: what was inferred and the user should know
  Options options;

  [[nodiscard]] int world_size() const { return static_cast<int>(ranks.size()); }
  /// Adds a notice, unless it is empty.
  void note(const std::string& text) {
    if (!text.empty()) notices.push_back(text);
  }
};

/// Decides the way, sizes and places, or says why not (kUsage, naming the values). In the plan's options what the flags
/// of the rendezvous amount to is in master_port: 0 or absent means that the kernel chooses.
Result<LaunchPlan> make_plan(const Options& options, const Machine& machine, std::string run_id);
/// The same for a way that was decided before.
Result<LaunchPlan> make_plan(const Options& options, const Machine& machine, std::string run_id,
                             LaunchMode launch_mode);

/// What the nodes of this run are told.
LaunchSettings launch_settings(const LaunchPlan& plan, const Machine& machine, std::string working_directory);

/// Whether a node that joins asked for what the first node has planned: as many ranks here, as many nodes, one role.
/// What a node has not asked for, the first decides.
Result<> check_same_wishes(const LaunchPlan& here, const LaunchSettings& first, int ranks_here);

}  // namespace taas::plan
