#include "plan/launch_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "plan/decide_launch_mode.hpp"
#include "plan/environment/rank_environment.hpp"
#include "plan/launch_mode/rendezvous.hpp"
#include "plan/sizes/size_request.hpp"
#include "plan/streams.hpp"

namespace taas::plan {
namespace {

constexpr const char* kNoRunId = "none";  // torchrun's default of --rdzv-id

/// Names of the machines in the order of their nodes, where they are known beforehand.
std::vector<std::string> names_of(const LaunchMode& mode) {
  if (const auto* task = std::get_if<SlurmTask>(&mode)) return task->step.nodes;
  if (const auto* allocation = std::get_if<SlurmAllocation>(&mode)) return allocation->job.nodes;
  std::vector<std::string> names;
  if (const auto* ssh = std::get_if<OverSsh>(&mode)) {
    for (const auto& host : ssh->hosts) names.push_back(host.name);
  }
  return names;
}

void add_nodes(LaunchPlan& plan, const std::vector<int>& ranks_on_node, const Machine& machine) {
  bool here = std::holds_alternative<OneMachine>(plan.launch_mode);
  auto names = plan.hosts;
  names.resize(ranks_on_node.size(), here ? machine.hostname : std::string());
  auto shares = share_ranks(ranks_on_node);
  for (const auto& [node, first_rank, local_world_size] : shares) {
    auto& name = names[plan.nodes.size()];
    plan.nodes.push_back({node, std::move(name), here && names.size() > 1, first_rank, local_world_size});
  }
  plan.ranks = place_ranks(shares);
}

void add_notices(LaunchPlan& plan) {
  const auto& rendezvous = plan.options.rendezvous;
  if (std::holds_alternative<SlurmTask>(plan.launch_mode) && (rendezvous.endpoint || rendezvous.master_addr)) {
    plan.notices.push_back(fmt::format(
        "nodes of a SLURM step find each other: {} is not used",
        rendezvous.endpoint ? "--rdzv-endpoint " + *rendezvous.endpoint : "--master-addr " + *rendezvous.master_addr));
  }
  if (plan.job && !plan.job->shell_of.empty() && !rendezvous.standalone) {
    plan.notices.push_back(
        fmt::format("this shell (srun --pty) stands for all tasks of step {}: ranks are started from here alone",
                    plan.job->shell_of));
  }
  const auto& ignored = plan.options.without_effect;
  if (!ignored.empty()) plan.notices.push_back(fmt::format("without effect here: {}", fmt::join(ignored, ", ")));
}

std::string name_run(const RendezvousOptions& options, std::string otherwise) {
  auto name = options.run_id.value_or(kNoRunId);
  if (name == kNoRunId || name.empty()) return otherwise;
  return name;
}

Error one_kind_of_processes(const std::string& word, Device here) {
  bool gpus = here == Device::kGpu;
  return usage_error(
      fmt::format("--nproc-per-node {} means {} here, and {} on the first node: all ranks have to be of "
                  "one kind; --nproc-per-node cpu on each node is one",
                  word, gpus ? "GPUs" : "cores", gpus ? "cores" : "GPUs"));
}

}  // namespace

Result<LaunchPlan> make_plan(const Options& options, const Machine& machine, std::string run_id) {
  auto mode = decide_launch_mode(options, machine);
  if (!mode) return mode.error();
  return make_plan(options, machine, std::move(run_id), std::move(*mode));
}

Result<LaunchPlan> make_plan(const Options& options, const Machine& machine, std::string run_id, LaunchMode mode) {
  auto counts = decide_node_counts(options, mode, machine);
  if (!counts) return counts.error();
  auto rendezvous = decide_rendezvous(options.rendezvous, mode);
  if (!rendezvous) return rendezvous.error();

  LaunchPlan plan;
  plan.options = options;
  plan.options.rendezvous = std::move(*rendezvous);
  plan.run_id = name_run(plan.options.rendezvous, std::move(run_id));
  plan.launch_mode = std::move(mode);
  if (auto job = read_slurm(machine.environment, machine.typed)) plan.job = std::move(*job);  // the way has judged it
  auto data = decide_data_machines(options.data, plan.launch_mode, plan.job);
  if (!data) return data.error();
  plan.device = counts->device;
  plan.min_nodes = counts->min_nodes;
  plan.spares = counts->spares;
  plan.expected_agents = counts->expected_agents;
  plan.notices = std::move(counts->notices);
  if (options.data.cpus || options.data.hosts) plan.options.data.cpus = data->count;
  plan.data = std::move(*data);
  plan.hosts = names_of(plan.launch_mode);
  add_nodes(plan, counts->ranks_on_node, machine);
  add_notices(plan);
  plan.nodes_count_themselves = std::holds_alternative<Join>(plan.launch_mode) && counts_by_machine(options.size);
  int most = plan.nodes_count_themselves
                 ? kMostRanks
                 : *std::max_element(counts->ranks_on_node.begin(), counts->ranks_on_node.end());
  if (auto there = check_local_ranks(options.output, most); !there) return there.error();
  auto outputs = decide_streams(options.output, plan.ranks);
  if (!outputs) return outputs.error();
  plan.outputs = std::move(*outputs);
  return plan;
}

LaunchSettings launch_settings(const LaunchPlan& plan, const Machine& machine, std::string working_directory) {
  LaunchSettings settings;
  settings.run_id = plan.run_id;
  settings.device = plan.device;
  settings.simulated = plan.nodes.front().simulated;
  settings.world_size = plan.world_size();
  if (plan.job && !plan.data.staged) settings.restarts_before = plan.job->restart_count;
  settings.options = plan.options;
  settings.environment = forwarded_environment(machine.environment);
  settings.working_directory = std::move(working_directory);
  return settings;
}

Result<> check_same_wishes(const LaunchPlan& here, const LaunchSettings& first, int ranks_here) {
  const auto& size = here.options.size;
  auto differs = [](std::string_view flag, std::string_view one, std::string_view other) {
    return usage_error(
        fmt::format("{} {} here, and {} on the first node: all nodes have to ask for the same, and would "
                    "else be another world than was meant",
                    flag, one, other));
  };
  bool by_machine = counts_by_machine(size) && counts_by_machine(first.options.size);
  if (by_machine && here.device != first.device) return one_kind_of_processes(*size.nproc_per_node, here.device);
  bool asked = !by_machine && (size.nproc_per_node || size.gpus || size.gpus_per_node);
  int wanted = here.nodes.front().local_world_size;
  if (asked && wanted != ranks_here) {
    return differs(size.nproc_per_node ? "--nproc-per-node" : "ranks of a node:", std::to_string(wanted),
                   std::to_string(ranks_here));
  }
  const auto& nodes = first.options.size.nnodes;
  if (size.nnodes && nodes && *size.nnodes != *nodes) return differs("--nnodes", *size.nnodes, *nodes);
  int devices = first.options.size.devices_per_rank;
  if (size.devices_per_rank > 1 && size.devices_per_rank != devices) {
    return differs("--devices-per-rank", std::to_string(size.devices_per_rank), std::to_string(devices));
  }
  const auto& role = here.options.rendezvous.role;
  if (role != first.options.rendezvous.role) return differs("--role", role, first.options.rendezvous.role);
  return {};
}

}  // namespace taas::plan
