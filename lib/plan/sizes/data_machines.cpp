#include "plan/sizes/data_machines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace taas::plan {
namespace {

/// The first flag that means nothing without CPU machines, as the user would write it; empty: none was given.
std::string needs_machines(const DataOptions& options) {
  const DataOptions none;
  if (options.cores) return fmt::format("--data-cores {}", *options.cores);
  if (!options.loader.empty()) return "--loader " + options.loader;
  if (options.units != none.units) return fmt::format("--units {}", options.units);
  if (options.buffer_bytes != none.buffer_bytes) return "--data-buffer";
  if (options.compression != none.compression) return "--data-compress";
  if (options.on_error != none.on_error) return "--data-on-error";
  return options.plain ? "--data-plain" : "";
}

Result<> check_without_machines(const DataOptions& options) {
  if (options.hosts)
    return usage_error(fmt::format("--data-hosts {}: --cpus 0 leaves them nothing to do", *options.hosts));
  if (options.cores) return usage_error(fmt::format("--data-cores {}: --cpus 0 has no CPU machine", *options.cores));
  if (!options.loader.empty()) {
    return usage_error(fmt::format("--loader {}: --cpus 0 has no CPU machine to prepare it", options.loader));
  }
  return {};
}

Result<std::vector<Host>> read_hosts(const DataOptions& options) {
  auto hosts = parse_hosts(*options.hosts);
  if (!hosts) return std::move(hosts).error().with("--data-hosts");
  auto wanted = static_cast<std::size_t>(options.cpus.value_or(static_cast<int>(hosts->size())));
  if (hosts->size() < wanted) {
    return usage_error(fmt::format("--cpus {}: --data-hosts {} names {} only", wanted, *options.hosts, hosts->size()));
  }
  hosts->resize(wanted);
  return hosts;
}

bool is_elsewhere(const LaunchMode& mode) { return !std::holds_alternative<OneMachine>(mode); }

/// A step of tasks that the user has started with srun has no room for another one.
bool may_start_steps(const LaunchMode& mode) {
  return std::holds_alternative<OneMachine>(mode) || std::holds_alternative<SlurmAllocation>(mode);
}

Result<DataMachines> use_group(int count, std::vector<std::string> nodes) {
  if (static_cast<int>(nodes.size()) < count) {
    return usage_error(fmt::format("--cpus {}: the job's second component has {} node(s)", count, nodes.size()));
  }
  nodes.resize(static_cast<std::size_t>(count));
  return DataMachines{count, {}, std::move(nodes)};
}

}  // namespace

std::vector<std::string> DataMachines::names() const {
  auto names = group;
  for (const auto& host : hosts) names.push_back(host.name);
  return names;
}

Result<DataMachines> decide_data_machines(const DataOptions& options, const LaunchMode& mode,
                                          const std::optional<SlurmJob>& job) {
  if (!options.cpus && !options.hosts) {
    auto flag = needs_machines(options);
    if (!flag.empty()) return usage_error(fmt::format("{}: only with --cpus N, the number of CPU machines", flag));
    return DataMachines{};
  }
  if (options.cpus == 0) {
    auto allowed = check_without_machines(options);
    return allowed ? Result<DataMachines>(DataMachines{}) : allowed.error();
  }
  if (options.hosts) {
    auto hosts = read_hosts(options);
    if (!hosts) return hosts.error();
    auto count = static_cast<int>(hosts->size());
    return DataMachines{count, std::move(*hosts), {}};
  }
  if (std::holds_alternative<SlurmStaged>(mode)) return DataMachines{*options.cpus, {}, {}, true};
  bool in_job_alone = job && !job->step;
  if (in_job_alone && may_start_steps(mode) && job->groups.size() > 1)
    return use_group(*options.cpus, job->groups[1].nodes);
  if (std::holds_alternative<SlurmSubmit>(mode)) return DataMachines{*options.cpus, {}, {}};
  if (is_elsewhere(mode)) {
    return usage_error(
        fmt::format("--cpus {}: {}", *options.cpus,
                    job ? "a job of SLURM needs a second component of CPU nodes, and taas-run without srun "
                          "in front; --data-hosts can name other machines"
                        : "over several machines --data-hosts has to name them"));
  }
  return DataMachines{*options.cpus, {}, {}};
}

int simulated_data_workers(const DataOptions& options, int machines, int cores) {
  return options.cores.value_or(std::max(1, cores / std::max(1, machines)));
}

std::string data_memory_warning(int workers, int cores, std::int64_t available_bytes) {
  constexpr std::int64_t kPythonWithTorch = 300'000'000;
  constexpr double kGiga = 1e9;
  auto taken = workers * kPythonWithTorch;
  if (taken <= available_bytes / 2) return "";
  return fmt::format(
      "{} data workers take about {:.1f} GB of this machine's {:.1f} GB of available memory, their datasets not "
      "counted, and it has {} usable core(s): --data-cores or --cpus with a smaller number starts fewer",
      workers, static_cast<double>(taken) / kGiga, static_cast<double>(available_bytes) / kGiga, cores);
}

std::string describe(const DataMachines& machines, const DataOptions& options, int cores) {
  if (machines.count == 0) return "no CPU machine, loaders are plain";
  auto noun = machines.count == 1 ? "CPU machine" : "CPU machines";
  if (!machines.group.empty()) {
    return fmt::format("{} {} of the job's second component: {}", machines.count, noun, fmt::join(machines.group, " "));
  }
  if (machines.staged) return fmt::format("{} {} of a job that starts first", machines.count, noun);
  if (machines.hosts.empty()) {
    return fmt::format("{} {}, simulated here, with {} worker(s) each", machines.count, noun,
                       simulated_data_workers(options, machines.count, cores));
  }
  auto text = fmt::format("{} {} over ssh:", machines.count, noun);
  for (const auto& host : machines.hosts) {
    auto workers = host.slots ? host.slots : options.cores;
    text += fmt::format(" {} (workers: {})", host.name, workers ? std::to_string(*workers) : "as many as cores");
  }
  return text;
}

}  // namespace taas::plan
