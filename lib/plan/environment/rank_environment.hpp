#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/ranks/rank_placement.hpp"
#include "plan/options/launch_settings.hpp"

namespace taas::plan {

/// Of a run with data workers. Strings have the same hashes in its ranks and in all data workers: a dataset that
/// iterates a set gives the same batch wherever it is made.
inline constexpr std::pair<const char*, const char*> kHashSeed{"PYTHONHASHSEED", "0"};

/// Of ranks and data workers with --split.
inline constexpr std::pair<const char*, const char*> kSplit{"TAAS_SPLIT", "1"};

/// What a rank's environment needs that is known only when the run starts.
struct RunAddresses {
  std::string master_addr;
  std::uint16_t master_port = 0;
  bool agent_store = true;                ///< the launcher serves the store there
  std::string output_directory;           ///< TAAS_OUTPUT_DIR
  std::string error_file;                 ///< TORCHELASTIC_ERROR_FILE of this rank and generation
  std::string interface;                  ///< of this node, through which it reaches the others; empty: not known
  std::string stop_file;                  ///< TAAS_STOP_REQUESTED: appears when the run ends soon; empty: not set
  std::string data_plan = {};             ///< TAAS_DATA_PLAN, and TAAS_ROLE; empty: no data delivery, neither is set
  std::string events = {};                ///< TAAS_EVENTS, with data_plan
  std::vector<std::string> servers = {};  ///< "host:port" of all ranks, for frameworks whose ranks open servers
  std::string timer_file = {};            ///< TORCHELASTIC_TIMER_FILE; empty: no timers are served
  std::string log_folder = {};            ///< TAAS_LOG_DIR, where the user wants a log
  int processors = 0;                     ///< that each rank of this node is bound to, or more; 0: none is bound
  std::string flight_records = {};        ///< what the names of torch's flight records begin with; empty: torch's own
};

using Variable = std::pair<std::string, std::string>;

/// A Python program, as far as its name and options tell: a file without suffix that Python runs is none.
bool is_python(const ProgramOptions& program);

/// PYTHONPATH with the package that comes with taas-run; empty: as it is.
std::string python_path(const ProgramOptions& program, const Machine& machine);

/// OMP_NUM_THREADS of a rank whose user did not set it.
int omp_threads(const LaunchSettings& settings, const Machine& machine, const RankPlace& place);

/// How many ports a node holds for servers that ranks open, when it may have so many ranks.
int ports_for_ranks(const Options& options, int ranks);

/// Whether this rank is shown its own devices only, so that its first one is the first that it sees.
bool sees_own_devices(const LaunchSettings& settings, const Machine& machine, const RankPlace& place);

/// What this rank finds in its environment before anything is known of the run.
std::optional<std::string> variable_of_rank(const LaunchSettings& settings, const Machine& machine,
                                            const RankPlace& place, const std::string& name);

/// The variables set for one rank of one generation, over the environment of `machine`, which is the rank's node. The
/// contract is docs/environment.md.
std::vector<Variable> rank_environment(const LaunchSettings& settings, const Machine& machine, const RankPlace& place,
                                       Generation generation, const RunAddresses& addresses);

/// Whether this machine can hold so many ranks of the run: an agent's answer to Welcome. The error does not name the
/// machine.
Result<> check_share(const LaunchSettings& settings, const Machine& machine, int ranks);

}  // namespace taas::plan
