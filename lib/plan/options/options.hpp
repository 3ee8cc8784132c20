#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ranks/numa_binding.hpp"
#include "plan/options/data_options.hpp"
#include "plan/options/framework_options.hpp"
#include "plan/options/nodes_options.hpp"

namespace taas::plan {

/// When the console uses colour and the live footer.
enum class Color { kAuto, kAlways, kNever };
enum class Verbosity { kQuiet, kNormal, kVerbose };

/// What is to be run, as the user wrote it.
struct ProgramOptions {
  std::string program;                 ///< a .py file, a module, an executable, or a program shipped with taas-run
  std::vector<std::string> arguments;  ///< the program's own, never read by the launcher
  bool module = false;                 ///< -m: `program` is a Python module
  bool no_python = false;              ///< --no-python: exec `program` as it is, even if it ends in .py
  bool script = false;                 ///< --run-path: a Python script whatever its name; wins over no_python
  std::string preload = "auto";        ///< --preload: auto, none, or modules with commas between them
  NumaBinding numa_binding = NumaBinding::kNone;  ///< --numa-binding
};

/// How many processes and where. Texts are kept as written: make_plan() reads and judges them.
struct SizeOptions {
  std::optional<int> gpus;                    ///< --gpus: total over all nodes
  std::optional<int> gpus_per_node;           ///< --gpus-per-node; absent: 8, or all GPUs of a larger machine
  std::optional<std::string> nnodes;          ///< --nnodes: N or MIN:MAX (a range only where nodes are machines)
  std::optional<std::string> nproc_per_node;  ///< --nproc-per-node: N, auto, gpu or cpu
  bool oversubscribe = false;                 ///< more ranks than GPUs on purpose
  int devices_per_rank = 1;                   ///< --devices-per-rank: GPUs of each rank, of one node
};

/// Who serves the store.
enum class StoreHost {
  kAny,       ///< nothing was said: launcher_serves_store() decides
  kLauncher,  ///< --store agent
  kRankZero,  ///< --store rank0
};

/// The rendezvous and what ranks are told about it.
struct RendezvousOptions {
  std::optional<std::string> run_id;       ///< --rdzv-id
  std::string backend = "static";          ///< --rdzv-backend: static or c10d, which are the same here
  std::optional<std::string> endpoint;     ///< --rdzv-endpoint: make_plan() turns it into master_port, or into Join
  std::optional<int> node_rank;            ///< --node-rank
  std::optional<std::string> master_addr;  ///< --master-addr
  std::optional<int> master_port;          ///< --master-port; absent or 0: the kernel chooses
  std::optional<std::string> local_addr;   ///< --local-addr: where others reach this node
  bool standalone = false;
  StoreHost store = StoreHost::kAny;  ///< --store
  std::string role = "default";
  bool virtual_local_rank = false;
};

/// Restarts, signals and patience.
struct SupervisionOptions {
  int max_restarts = 0;
  std::optional<std::chrono::milliseconds> monitor_interval;  ///< --monitor-interval; absent: restarts back off
  std::chrono::milliseconds shutdown_timeout{30000};
  std::chrono::milliseconds leftover_timeout{300000};  ///< --leftover-timeout
  std::chrono::milliseconds exit_timeout{30000};       ///< --exit-timeout; 0: off
  std::vector<int> signals_to_handle;                  ///< empty: TERM, INT, HUP, QUIT
  int end_with = 0;                                    ///< --end-with: the process whose end is the run's; 0: none
};

/// What becomes of what ranks other than 0 write to TAAS_OUTPUT_DIR.
enum class RankFiles {
  kAll,      ///< it is published like that of rank 0
  kPrivate,  ///< each has a folder of its own, which is not published
  kNone,     ///< writing is refused
};

/// Where output goes and what of it is shown.
struct OutputOptions {
  std::string directory = "./taas-runs";           ///< --output
  std::vector<std::string> protected_directories;  ///< --protect: read-only for ranks other than 0
  std::vector<std::string> unprotected;            ///< --protect-except: folders in them that stay writable
  RankFiles ranks = RankFiles::kAll;               ///< --rank-output
  std::optional<std::string> log_dir;              ///< --log-dir: torchrun's layout of log files
  std::string log_level;                           ///< --log-level, or TAAS_LOG: base/log/log_settings.hpp
  std::string redirects = "0";                     ///< -r, torchrun's syntax: "3" or "0:1,1:2"
  std::string tee = "0";                           ///< -t
  std::vector<int> local_ranks_filter;             ///< empty: no filter
  std::string prefix_template;                     ///< --log-line-prefix-template; empty: the built-in prefix
  Verbosity verbosity = Verbosity::kNormal;
  Color color = Color::kAuto;
  bool json = false;
};

struct Options {
  ProgramOptions program;
  SizeOptions size;
  NodesOptions nodes;
  SlurmOptions slurm;
  DataOptions data;
  FrameworkOptions frameworks;
  RendezvousOptions rendezvous;
  SupervisionOptions supervision;
  OutputOptions output;
  bool dry_run = false;
  bool as_agent = false;  ///< --as-agent: this process was started by a coordinator on another machine
  std::vector<std::string> without_effect;  ///< flags of torchrun that were given and mean nothing here, for a notice
};

/// What was read off this machine before planning: make_plan() itself asks nobody.
struct Machine {
  std::string hostname;
  int gpus = 0;   ///< visible to this process (CUDA_VISIBLE_DEVICES heeded)
  int cores = 1;  ///< usable: the affinity mask, not the machine's size
  std::map<std::string, std::string> environment;
  std::string python_packages = {};  ///< folder of the package `taas` that comes with this taas-run; empty: none
  std::string preload_hook = {};     ///< folder of the `sitecustomize` that preloads; empty: none
  std::string rank_extension = {};   ///< folder of what torch itself imports in ranks; empty: none
  std::map<std::string, int> job_gpus =
      {};                               ///< of each node of the SLURM job; empty: SLURM was not asked (slurm_gpus.hpp)
  std::string gpu_problem = {};         ///< why none of its GPUs is visible, where nobody hid them; as in Gpus
  bool typed = false;                   ///< in an interactive shell, by a person
  bool submits_jobs = false;            ///< to SLURM, in no job of which it is: it may be a login node
  bool on_terminal = false;             ///< its stdout is one
  std::string other_accelerators = {};  ///< "8 AMD GPUs": not counted in `gpus`
  std::string accelerator_variable = {};  ///< by which a rank is given its own of them; empty: none is known
  int sliced_gpus = 0;                    ///< as in Gpus
};

// Options travel to agents as JSON.
// clang-format off
BOOST_DESCRIBE_ENUM(Color, kAuto, kAlways, kNever)
BOOST_DESCRIBE_ENUM(Verbosity, kQuiet, kNormal, kVerbose)
BOOST_DESCRIBE_ENUM(RankFiles, kAll, kPrivate, kNone)
BOOST_DESCRIBE_ENUM(StoreHost, kAny, kLauncher, kRankZero)
BOOST_DESCRIBE_STRUCT(ProgramOptions, (), (program, arguments, module, no_python, script, preload, numa_binding))
BOOST_DESCRIBE_STRUCT(SizeOptions, (), (gpus, gpus_per_node, nnodes, nproc_per_node, oversubscribe, devices_per_rank))
BOOST_DESCRIBE_STRUCT(RendezvousOptions, (), (run_id, backend, endpoint, node_rank, master_addr, master_port, local_addr,
                                              standalone, store, role, virtual_local_rank))
BOOST_DESCRIBE_STRUCT(SupervisionOptions, (), (max_restarts, monitor_interval, shutdown_timeout, leftover_timeout, exit_timeout, signals_to_handle))
BOOST_DESCRIBE_STRUCT(OutputOptions, (), (directory, protected_directories, unprotected, ranks, log_dir, log_level, redirects, tee, local_ranks_filter,
                                          prefix_template, verbosity, color, json))
BOOST_DESCRIBE_STRUCT(Options, (), (program, size, nodes, slurm, data, frameworks, rendezvous, supervision, output, dry_run,
                                    as_agent, without_effect))
// clang-format on

}  // namespace taas::plan
