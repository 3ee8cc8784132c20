#include "start/dry_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/json/published_json.hpp"
#include "base/shell.hpp"
#include "command/documents.hpp"
#include "plan/launch_mode/rendezvous.hpp"
#include "plan/program/preload.hpp"

namespace taas::cli {
namespace {

using Variables = std::vector<plan::Variable>;

constexpr const char* kPortOfTheKernel = "<a free port>";
constexpr std::size_t kMostRanksListed = 64;

std::string run_folder(const plan::LaunchPlan& plan) {
  return fmt::format("{}/{}", plan.options.output.directory, plan.run_id);
}

bool is_here(const plan::LaunchPlan& plan) { return std::holds_alternative<plan::OneMachine>(plan.launch_mode); }

plan::RunAddresses addresses_of(const plan::LaunchPlan& plan) {
  const auto& rendezvous = plan.options.rendezvous;
  plan::RunAddresses addresses;
  addresses.master_addr = is_here(plan) ? "127.0.0.1" : "<an address of node 0>";
  addresses.master_port = static_cast<std::uint16_t>(rendezvous.master_port.value_or(0));
  addresses.agent_store = plan::launcher_serves_store(plan.options, plan.world_size());
  addresses.output_directory = addresses.error_file = fmt::format("<in {}>", run_folder(plan));
  if (plan.options.data.cpus) addresses.data_plan = addresses.events = "<in a private folder>";
  addresses.log_folder = fmt::format("<in {}>", run_folder(plan));
  addresses.flight_records = fmt::format("<in {}>", run_folder(plan));
  if (plan::ports_for_ranks(plan.options, 1) > 0) {
    addresses.servers.assign(plan.ranks.size(), is_here(plan) ? "127.0.0.1:<a free port>" : "<host:port>");
  }
  if (!is_here(plan)) addresses.interface = "<the one with that node's address>";
  return addresses;
}

Variables environment_of(const plan::LaunchPlan& plan, const plan::LaunchSettings& settings,
                         const plan::Machine& machine, const RankPlace& place) {
  auto addresses = addresses_of(plan);
  auto variables = plan::rank_environment(settings, machine, place, Generation{0}, addresses);
  for (auto& [name, value] : variables) {
    if (name == "MASTER_PORT" && addresses.master_port == 0) value = kPortOfTheKernel;
    if (name == "OMP_NUM_THREADS" && !is_here(plan)) value = "<cores there / LOCAL_WORLD_SIZE>";
  }
  return variables;
}

std::string devices_of(const plan::LaunchPlan& plan) {
  int each = plan.options.size.devices_per_rank;
  return each == 1 ? "" : fmt::format(", {} for each rank", each);
}

std::string describe_here(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  bool gpu = plan.device == plan::Device::kGpu;
  bool simulated = plan.nodes.front().simulated;
  return fmt::format(
      "ranks    {} on {}{}, {}\n", plan.world_size(), machine.hostname,
      simulated ? fmt::format(" as {} simulated nodes", plan.nodes.size()) : std::string(),
      gpu ? fmt::format("with {} visible GPU(s){}", machine.gpus, devices_of(plan)) : "on the CPU with gloo");
}

std::string describe_elsewhere(const plan::LaunchPlan& plan) {
  auto nodes = static_cast<int>(plan.nodes.size());
  return fmt::format("ranks    {} on {}{} node(s){}\n", plan.world_size(),
                     plan.min_nodes < nodes ? fmt::format("{} to ", plan.min_nodes) : std::string(), nodes,
                     plan.spares > 0 ? fmt::format(", and {} spare(s)", plan.spares) : std::string());
}

std::string describe_nodes(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  auto text = fmt::format("way      {}\n", plan::describe(plan.launch_mode)) +
              (is_here(plan) ? describe_here(plan, machine) : describe_elsewhere(plan));
  for (const auto& node : plan.nodes) {
    text += fmt::format("  node {}: ranks {} to {}{}\n", node.index.value, node.first_rank.value,
                        node.first_rank.value + node.local_world_size - 1,
                        is_here(plan) || node.hostname.empty() ? "" : " on " + node.hostname);
  }
  return text;
}

int omp_threads(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  return plan::omp_threads(plan::launch_settings(plan, machine, ""), machine, plan.ranks.front());
}

std::string describe_environment(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  auto settings = plan::launch_settings(plan, machine, "");
  auto first = environment_of(plan, settings, machine, plan.ranks.front());
  std::string text = "environment of rank 0, over your own\n";
  for (const auto& [name, value] : first) text += fmt::format("  {}={}\n", name, type_for_shell(value));
  if (plan.world_size() == 1) return text;
  text += "other ranks, where they differ\n";
  auto listed = std::min(plan.ranks.size(), kMostRanksListed);
  for (std::size_t i = 1; i < listed; ++i) {
    text += fmt::format("  rank {}:", i);
    for (const auto& variable : environment_of(plan, settings, machine, plan.ranks[i])) {
      bool same = std::find(first.begin(), first.end(), variable) != first.end();
      if (!same) text += fmt::format(" {}={}", variable.first, type_for_shell(variable.second));
    }
    text += "\n";
  }
  if (listed < plan.ranks.size()) text += fmt::format("  and {} more; --json has all\n", plan.ranks.size() - listed);
  return text;
}

std::string describe_data(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  const auto& data = plan.options.data;
  if (!data.cpus) return "";
  auto text = fmt::format("data     {}\n", plan::describe(plan.data, data, machine.cores));
  text += fmt::format("  buffer {} bytes for each rank", data.buffer_bytes);
  if (data.units > 0) text += fmt::format(", {} samples from each loader", data.units);
  if (!data.loader.empty()) text += fmt::format(", {} prepared before ranks start", data.loader);
  return text + "\n";
}

std::optional<PlannedData> planned_data(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  const auto& data = plan.options.data;
  if (!data.cpus) return std::nullopt;
  PlannedData planned{*data.cpus,       plan::describe(plan.data, data, machine.cores), {}, data.units, data.loader,
                      data.buffer_bytes};
  for (const auto& host : plan.data.hosts) planned.hosts.push_back(host.name);
  return planned;
}

/// As the agents will decide; of programs on other machines, by the files here.
plan::PreloadChoice preload_of(const plan::LaunchPlan& plan, const std::vector<std::string>& command) {
  int ranks = is_here(plan) ? plan.world_size() : plan.nodes.front().local_world_size;
  return plan::choose_preload(plan.options, command, ranks, plan::read_source);
}

std::string describe_preload(const plan::PreloadChoice& choice) {
  if (choice.modules.empty()) return fmt::format("preload  none ({})\n", choice.why);
  return fmt::format("preload  {}\n", fmt::join(choice.modules, ", "));
}

std::string as_text(const plan::LaunchPlan& plan, const plan::Machine& machine,
                    const std::vector<std::string>& command) {
  auto text = fmt::format("run      {}\n", plan.run_id) + describe_nodes(plan, machine);
  if (is_here(plan)) {
    text += fmt::format("cores    {} usable, {} for each rank\n", machine.cores, omp_threads(plan, machine));
  }
  text += describe_data(plan, machine);
  text += fmt::format("restarts {}\n", plan.options.supervision.max_restarts);
  text += fmt::format("command  {}\n", type_for_shell(command)) + describe_preload(preload_of(plan, command));
  text += fmt::format("output   {}\n", run_folder(plan));
  for (const auto& notice : plan.notices) text += fmt::format("note     {}\n", notice);
  return text + describe_environment(plan, machine);
}

std::vector<PlannedRank> planned_ranks(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  auto settings = plan::launch_settings(plan, machine, "");
  std::vector<PlannedRank> ranks;
  for (const auto& rank : plan.ranks) {
    auto& planned = ranks.emplace_back(PlannedRank{rank.rank.value, rank.node.value, rank.local_rank, {}});
    for (const auto& [name, value] : environment_of(plan, settings, machine, rank)) planned.environment[name] = value;
  }
  return ranks;
}

PlanDocument as_document(const plan::LaunchPlan& plan, const plan::Machine& machine,
                         const std::vector<std::string>& command) {
  PlanDocument document;
  document.run_id = plan.run_id;
  document.way = plan::describe(plan.launch_mode);
  document.device = plan.device == plan::Device::kGpu ? "gpu" : "cpu";
  document.world_size = plan.world_size();
  document.gpus = machine.gpus;
  document.devices_per_rank = plan.options.size.devices_per_rank;
  document.cores = machine.cores;
  document.omp_threads = omp_threads(plan, machine);
  document.max_restarts = plan.options.supervision.max_restarts;
  document.command = command;
  document.preload = preload_of(plan, command).modules;
  document.output = run_folder(plan);
  document.min_nodes = plan.min_nodes;
  document.spares = plan.spares;
  document.data = planned_data(plan, machine);
  document.notices = plan.notices;
  for (const auto& node : plan.nodes) {
    document.nodes.push_back(
        {node.index.value, node.hostname, node.simulated, node.first_rank.value, node.local_world_size});
  }
  document.ranks = planned_ranks(plan, machine);
  return document;
}

}  // namespace

std::string dry_run(const plan::LaunchPlan& plan, const plan::Machine& machine,
                    const std::vector<std::string>& command) {
  return plan.options.output.json ? published_document(as_document(plan, machine, command)) + "\n"
                                  : as_text(plan, machine, command);
}

}  // namespace taas::cli
