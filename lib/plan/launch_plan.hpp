#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "plan/options.hpp"

namespace taas::plan {

enum class Device { kCpu, kGpu };

/// One machine, or a simulated one on this machine.
struct NodePlan {
  NodeIndex index;
  std::string hostname;
  bool simulated = false;
  Rank first_rank;
  int local_world_size = 0;
};

/// One training process: who it is. Its environment is made by rank_environment() once the store's address is known.
struct RankPlan {
  Rank rank;
  int local_rank = 0;
  NodeIndex node;
};

/// Which of a rank's streams go where, after -r, -t and --local-ranks-filter. The files hold everything, always.
struct RankOutput {
  bool stdout_on_console = false;
  bool stderr_on_console = false;
};

/// Everything about a launch that can be decided without doing it.
struct LaunchPlan {
  std::string run_id;  ///< --rdzv-id where it counts, else the one given to make_plan()
  Device device = Device::kCpu;
  std::vector<NodePlan> nodes;
  std::vector<RankPlan> ranks;       ///< ranks[i].rank.value == i
  std::vector<RankOutput> outputs;   ///< by rank
  int omp_threads = 1;               ///< OMP_NUM_THREADS for ranks, unless the user set it
  std::vector<std::string> notices;  ///< one line each: what was inferred and the user should know
  Options options;

  [[nodiscard]] int world_size() const { return static_cast<int>(ranks.size()); }
};

/// Decides sizes and places, or says why not (kUsage, naming the values). In the plan's options what the flags of the
/// rendezvous amount to is in master_port: 0 or absent means that the kernel chooses.
Result<LaunchPlan> make_plan(const Options& options, const Machine& machine, std::string run_id);

/// What a rank's environment needs that is known only when the run starts.
struct RunAddresses {
  std::string master_addr;
  std::uint16_t master_port = 0;
  bool agent_store = true;       ///< the launcher serves the store there
  std::string output_directory;  ///< TAAS_OUTPUT_DIR
  std::string error_file;        ///< TORCHELASTIC_ERROR_FILE of this rank and generation
};

using Variable = std::pair<std::string, std::string>;

/// The variables set for one rank of one generation, over the launcher's own environment. The contract is
/// docs/environment.md.
std::vector<Variable> rank_environment(const LaunchPlan& plan, const Machine& machine, Rank rank, Generation generation,
                                       const RunAddresses& addresses);

}  // namespace taas::plan
