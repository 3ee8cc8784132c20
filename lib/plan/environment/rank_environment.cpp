#include "plan/environment/rank_environment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "base/environment/environment.hpp"
#include "base/text.hpp"
#include "plan/environment/extra_variables.hpp"
#include "plan/environment/tensorflow_config.hpp"
#include "plan/sizes/size_request.hpp"

namespace taas::plan {
namespace {

/// Sets variables, and collects those of which the user's own value wins.
class Writer {
 public:
  explicit Writer(const Machine& machine) : machine_(machine) {}

  void set(const char* name, std::string value) { variables_.emplace_back(name, std::move(value)); }
  void set(const char* name, int value) { set(name, std::to_string(value)); }
  void set_default(const char* name, std::string value) {
    if (!machine_.environment.contains(name)) set(name, std::move(value));
  }
  /// In place of what was set before.
  void replace(Variable variable) {
    std::erase_if(variables_, [&](const Variable& other) { return other.first == variable.first; });
    variables_.push_back(std::move(variable));
  }
  std::vector<Variable> take() && { return std::move(variables_); }

 private:
  const Machine& machine_;
  std::vector<Variable> variables_;
};

std::string signal_names(std::vector<int> signals) {
  if (signals.empty()) signals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  std::vector<std::string> names;
  for (int signal : signals) {
    const char* name = ::sigabbrev_np(signal);
    names.push_back(name == nullptr ? std::to_string(signal) : fmt::format("SIG{}", name));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

/// More ranks on the machine than it has GPUs (--oversubscribe), or its GPUs are slices.
bool shares_gpus(const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  auto ranks = std::int64_t{settings.simulated ? place.world_size : place.local_world_size};
  return settings.device == Device::kGpu && machine.gpus > 0 &&
         (ranks * settings.options.size.devices_per_rank > machine.gpus || (ranks > 1 && has_slices(machine)));
}

/// Each rank sees its own devices only, from device 0 on, whatever its local rank is.
bool is_local_rank_virtual(const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  return settings.options.rendezvous.virtual_local_rank || shares_gpus(settings, machine, place);
}

void set_ranks(Writer& writer, const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  const auto& rendezvous = settings.options.rendezvous;
  writer.set("RANK", place.rank.value);
  writer.set("WORLD_SIZE", place.world_size);
  writer.set("LOCAL_RANK", is_local_rank_virtual(settings, machine, place) ? 0 : place.local_rank);
  writer.set("LOCAL_WORLD_SIZE", place.local_world_size);
  writer.set("GROUP_RANK", place.node.value);
  writer.set("GROUP_WORLD_SIZE", place.nodes);
  writer.set("NODE_RANK", place.node.value);
  writer.set("ROLE_NAME", rendezvous.role);
  writer.set("ROLE_RANK", place.rank.value);
  writer.set("ROLE_WORLD_SIZE", place.world_size);
  writer.set("TAAS_DEVICES_PER_RANK", settings.options.size.devices_per_rank);
  writer.set("LOCAL_SIZE", place.local_world_size);
  writer.set("CROSS_RANK", place.node.value);
  writer.set("CROSS_SIZE", place.nodes);
}

void set_elastic(Writer& writer, const LaunchSettings& settings, Generation generation, const RunAddresses& addresses) {
  const auto& supervision = settings.options.supervision;
  writer.set("MASTER_ADDR", addresses.master_addr);
  writer.set("MASTER_PORT", addresses.master_port);
  writer.set("TORCHELASTIC_RUN_ID", settings.run_id);
  writer.set("TORCHELASTIC_RESTART_COUNT", settings.restarts_before + generation.value);
  writer.set("TORCHELASTIC_MAX_RESTARTS", supervision.max_restarts);
  writer.set("TORCHELASTIC_USE_AGENT_STORE", std::string(addresses.agent_store ? "True" : "False"));
  writer.set("TORCHELASTIC_ERROR_FILE", addresses.error_file);
  if (!addresses.timer_file.empty()) writer.set("TORCHELASTIC_TIMER_FILE", addresses.timer_file);
  writer.set("TORCHELASTIC_SIGNALS_TO_HANDLE", signal_names(supervision.signals_to_handle));
}

/// For all ranks, on every node.
bool hides_gpus(const FrameworkOptions& options) {
  return std::ranges::find(options.env, "CUDA_VISIBLE_DEVICES=") != options.env.end();
}

std::vector<std::string> entries_of(const std::string& value) {
  std::vector<std::string> entries;
  for (auto entry : split(value, ',')) entries.emplace_back(trim(entry, " "));
  return entries;
}

/// Devices of the launcher itself, in the order that CUDA numbers them: a subset given to a rank is named by these.
std::vector<std::string> visible_devices(const Machine& machine, const char* variable) {
  std::vector<std::string> devices;
  if (auto value = find_variable(machine.environment, variable)) {
    devices = entries_of(*value);
    devices.resize(std::min(devices.size(), static_cast<std::size_t>(machine.gpus)));  // from a bad entry on: ignored
  } else {
    for (int device = 0; device < machine.gpus; ++device) devices.push_back(std::to_string(device));
  }
  return devices;
}

constexpr const char *kCudaDevices = "CUDA_VISIBLE_DEVICES", *kHipDevices = "HIP_VISIBLE_DEVICES";

/// Numbers of the devices of one rank, as if there were enough: its own ones, its node's share where this machine plays
/// several nodes (each of them counts local ranks from 0), else all of the node.
std::vector<std::size_t> numbers_of(const LaunchSettings& settings, const RankPlace& place, bool own) {
  auto each = static_cast<std::size_t>(settings.options.size.devices_per_rank);
  int before = settings.simulated ? place.rank.value - place.local_rank : 0;  // ranks of nodes that this machine plays
  std::vector<std::size_t> numbers(each * static_cast<std::size_t>(own ? 1 : place.local_world_size));
  std::iota(numbers.begin(), numbers.end(), each * static_cast<std::size_t>(before + (own ? place.local_rank : 0)));
  return numbers;
}

/// The same by the names in `all`; ranks that share GPUs are dealt over them round robin.
std::vector<std::string> devices_of(const LaunchSettings& settings, const RankPlace& place, bool own,
                                    const std::vector<std::string>& all) {
  std::vector<std::string> devices;
  for (auto number : numbers_of(settings, place, own)) {
    if (devices.size() < all.size()) devices.push_back(all[number % all.size()]);
  }
  return devices;
}

/// Of CUDA's as torchrun does: the numbers of the GPUs that the rank would have. How many accelerators of other makers
/// a program sees is not known: without a list of the user's they are numbers as well. A rank for which the list is too
/// short sees none, rather than those of others.
void set_uncounted_devices(Writer& writer, const Machine& machine, const std::vector<std::size_t>& numbers) {
  writer.set_default(kCudaDevices, fmt::format("{}", fmt::join(numbers, ",")));
  const auto& variable = machine.accelerator_variable;
  if (variable.empty()) return;
  auto given = find_variable(machine.environment, variable);
  if (!given && variable == kHipDevices) given = find_variable(machine.environment, kCudaDevices);
  if (!given) return writer.set(variable.c_str(), fmt::format("{}", fmt::join(numbers, ",")));
  const auto all = entries_of(*given);
  std::vector<std::string> own;
  for (auto number : numbers) {
    if (number < all.size()) own.push_back(all[number]);
  }
  if (own.size() < numbers.size()) own.clear();
  writer.set(variable.c_str(), fmt::format("{}", fmt::join(own, ",")));
}

void set_devices(Writer& writer, const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  bool own = sees_own_devices(settings, machine, place);
  if (machine.gpus == 0) {
    if (own) set_uncounted_devices(writer, machine, numbers_of(settings, place, own));
    return;
  }
  if (!own && (settings.device == Device::kCpu || !settings.simulated)) return;
  bool hip = !value_of(machine.environment, kHipDevices).empty();  // it wins over CUDA's on ROCm
  auto all = visible_devices(machine, hip ? kHipDevices : kCudaDevices);
  auto list = fmt::format("{}", fmt::join(devices_of(settings, place, own, all), ","));
  if (hip) writer.set(kHipDevices, list);
  writer.set(kCudaDevices, list);
}

/// Gloo takes one interface, and left alone looks the machine's name up, which is slow or fails where the name does not
/// resolve. NCCL finds its way by itself.
std::string interface_for_gloo(const RunAddresses& addresses) {
  if (!addresses.interface.empty()) return addresses.interface;
  const auto& master = addresses.master_addr;
  return master == "localhost" || master == "::1" || master.starts_with("127.") ? "lo" : "";
}

/// NCCL refuses two ranks on one GPU of one host, and tells hosts apart by this id: ranks with an id of their own talk
/// over sockets, whatever they share. What belongs to faster ways between hosts stays out of it.
void set_sharing(Writer& writer, const LaunchSettings& settings, const RankPlace& place,
                 const RunAddresses& addresses) {
  writer.set("NCCL_HOSTID", fmt::format("{}-rank-{}", settings.run_id, place.rank.value));
  writer.set_default("NCCL_NET", "Socket");
  writer.set_default("NCCL_MNNVL_ENABLE", "0");
  if (auto interface = interface_for_gloo(addresses); !interface.empty()) {
    writer.set_default("NCCL_SOCKET_IFNAME", "=" + interface);
  }
}

/// From 2.15 on torch's "nccl" is another implementation, which has one device a group: the one that LOCAL_RANK counts.
/// Ranks with several devices have the older one, and so have those that share a GPU, which that one was seen to do.
void set_nccl(Writer& writer, const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  bool several = settings.device == Device::kGpu && machine.gpus > 0 && settings.options.size.devices_per_rank > 1;
  if (several || shares_gpus(settings, machine, place)) writer.set_default("TORCH_DIST_USE_NCCL2", "0");
}

void set_defaults(Writer& writer, const LaunchSettings& settings, const Machine& machine, const RankPlace& place,
                  const RunAddresses& addresses) {
  writer.set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  writer.set_default("PYTHONFAULTHANDLER", "1");  // a crash in C++ shows where in Python it was
  int threads = omp_threads(settings, machine, place);
  if (addresses.processors > 0) threads = std::min(threads, addresses.processors);
  writer.set_default("OMP_NUM_THREADS", std::to_string(threads));
  if (auto interface = interface_for_gloo(addresses); !interface.empty()) {
    writer.set_default("GLOO_SOCKET_IFNAME", std::move(interface));
  }
}

/// Frameworks that see no GPU and then look no further: each rank would train a model of its own. Where there are
/// accelerators that the launcher does not count, frameworks choose for themselves.
void set_frameworks_on_cpu(Writer& writer, const LaunchSettings& settings, const Machine& machine,
                           const RankPlace& place) {
  bool on_cpu = settings.device == Device::kCpu || machine.gpus == 0;
  if (!on_cpu || place.world_size == 1 || !machine.other_accelerators.empty()) return;
  const auto& own = machine.environment;
  if (!own.contains("ACCELERATE_TORCH_DEVICE") && !own.contains("ACCELERATE_USE_DEEPSPEED"))
    writer.set_default("ACCELERATE_USE_CPU", "1");
  if (place.local_world_size * place.nodes != place.world_size) return;  // Lightning has no such worlds
  writer.set_default("PL_TRAINER_DEVICES", std::to_string(place.local_world_size));
  writer.set_default("PL_TRAINER_NUM_NODES", std::to_string(place.nodes));
}

/// What torch remembers of the last collectives goes into the run's folder when one of them hangs.
void set_flight_recorder(Writer& writer, const Machine& machine, const RunAddresses& addresses) {
  writer.set_default("TORCH_NCCL_DUMP_ON_TIMEOUT", "1");
  if (!find_variable(machine.environment, "TORCH_NCCL_TRACE_BUFFER_SIZE"))
    writer.set_default("TORCH_FR_BUFFER_SIZE", "2000");
  // A rank whose watchdog has found a hang waits four times so long for the others' records before it ends: a minute
  // would be torch's own choice. The records are written within milliseconds.
  if (!find_variable(machine.environment, "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC"))
    writer.set_default("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "800");
  bool chosen =
      addresses.flight_records.empty() || find_variable(machine.environment, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE");
  if (!chosen) writer.set_default("TORCH_FR_DUMP_TEMP_FILE", addresses.flight_records);
}

void set_framework(Writer& writer, const FrameworkOptions& options, const RankPlace& place,
                   const RunAddresses& addresses) {
  bool tensorflow = options.framework == Framework::kTensorFlow;
  if (tensorflow) writer.set("TF_CONFIG", tensorflow_config(addresses.servers, place.rank));
  for (auto& variable : extra_variables(options, place.rank)) writer.replace(std::move(variable));
}

void set_data(Writer& writer, const DataOptions& options, const RunAddresses& addresses) {
  if (options.split) writer.set(kSplit.first, std::string(kSplit.second));
  if (addresses.data_plan.empty()) return;
  writer.set("TAAS_ROLE", std::string("rank"));
  writer.set("TAAS_DATA_PLAN", addresses.data_plan);
  writer.set("TAAS_EVENTS", addresses.events);
  writer.set_default(kHashSeed.first, kHashSeed.second);
}

std::string behind(const std::string& own, const std::string& path) { return own.empty() ? path : own + ":" + path; }

/// What torch imports in a rank is for every program: a shell script may start Python.
void set_python_path(Writer& writer, const ProgramOptions& program, const Machine& machine) {
  auto path = python_path(program, machine);
  if (!machine.rank_extension.empty()) {
    path = behind(path.empty() ? value_of(machine.environment, "PYTHONPATH") : path, machine.rank_extension);
  }
  if (!path.empty()) writer.set("PYTHONPATH", std::move(path));
}

/// A level that the user did not choose is the same without being told.
void set_log(Writer& writer, const OutputOptions& output, const std::string& folder) {
  if (output.log_level.empty()) return;
  writer.set(kLogVariable, output.log_level);
  writer.set(kLogFolderVariable, folder);
}

}  // namespace

bool is_python(const ProgramOptions& program) {
  return program.module || program.script || (program.program.ends_with(".py") && !program.no_python);
}

/// Behind what the user has: a package of the same name there wins.
std::string python_path(const ProgramOptions& program, const Machine& machine) {
  if (machine.python_packages.empty() || !is_python(program)) return "";
  return behind(value_of(machine.environment, "PYTHONPATH"), machine.python_packages);
}

int omp_threads(const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  return std::max(1, machine.cores / (settings.simulated ? place.world_size : place.local_world_size));
}

int ports_for_ranks(const Options& options, int ranks) {
  return options.frameworks.framework == Framework::kTensorFlow ? ranks : 0;
}

bool sees_own_devices(const LaunchSettings& settings, const Machine& machine, const RankPlace& place) {
  return is_local_rank_virtual(settings, machine, place) || settings.options.size.devices_per_rank > 1;
}

std::optional<std::string> variable_of_rank(const LaunchSettings& settings, const Machine& machine,
                                            const RankPlace& place, const std::string& name) {
  const auto own = rank_environment(settings, machine, place, Generation{0}, {});
  const auto found = std::ranges::find(own, name, &Variable::first);
  return found == own.end() ? find_variable(machine.environment, name) : found->second;
}

std::vector<Variable> rank_environment(const LaunchSettings& settings, const Machine& machine, const RankPlace& place,
                                       Generation generation, const RunAddresses& addresses) {
  Writer writer(machine);
  set_ranks(writer, settings, machine, place);
  set_elastic(writer, settings, generation, addresses);
  set_defaults(writer, settings, machine, place, addresses);
  set_devices(writer, settings, machine, place);
  if (shares_gpus(settings, machine, place)) set_sharing(writer, settings, place, addresses);
  set_nccl(writer, settings, machine, place);
  writer.set("TAAS_OUTPUT_DIR", addresses.output_directory);
  writer.set("TAAS_RUN_ID", settings.run_id);
  set_data(writer, settings.options.data, addresses);
  set_log(writer, settings.options.output, addresses.log_folder);
  set_python_path(writer, settings.options.program, machine);
  if (!addresses.stop_file.empty()) writer.set("TAAS_STOP_REQUESTED", addresses.stop_file);
  writer.set_default("WANDB_RUN_GROUP", settings.run_id);
  set_frameworks_on_cpu(writer, settings, machine, place);
  set_flight_recorder(writer, machine, addresses);
  set_framework(writer, settings.options.frameworks, place, addresses);
  return std::move(writer).take();
}

Result<> check_share(const LaunchSettings& settings, const Machine& machine, int ranks) {
  const auto& size = settings.options.size;
  bool wants_gpus = ranks > 0 && settings.device == Device::kGpu && !hides_gpus(settings.options.frameworks);
  if (wants_gpus && !machine.gpu_problem.empty()) {
    return gpus_have_vanished(machine.gpu_problem, "--env CUDA_VISIBLE_DEVICES=");
  }
  auto needed = std::int64_t{ranks} * size.devices_per_rank;
  bool enough = machine.gpus == 0 || needed <= machine.gpus;  // without any GPU these are CPU ranks
  if (enough || settings.device == Device::kCpu) return {};
  if (size.oversubscribe) return check_group_fits(machine.gpus, size);
  auto text = fmt::format("{} ranks need {} GPUs, and {} visible here: --gpus-per-node says how many a node has", ranks,
                          needed, machine.gpus == 1 ? "1 is" : fmt::format("{} are", machine.gpus));
  if (find_variable(machine.environment, "SLURM_JOB_ID"))
    text += "; srun --gpu-bind=none shows all of a node's to each task";
  return usage_error(std::move(text));
}

}  // namespace taas::plan
