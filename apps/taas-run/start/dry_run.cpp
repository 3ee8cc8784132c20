#include "start/dry_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <span>
#include <string_view>

#include "base/shell.hpp"
#include "base/utf8.hpp"
#include "plan/launch_mode/rendezvous.hpp"
#include "plan/program/preload.hpp"

namespace taas::cli {
namespace {

namespace json = boost::json;
using Variables = std::vector<plan::Variable>;

constexpr const char* kPortOfTheKernel = "<a free port>";
constexpr std::size_t kMostRanksListed = 64;
constexpr std::size_t kMostNodesListed = 4;  // else without --verbose: the plan is to fit a screen of 24 lines
constexpr std::size_t kColumns = 80;
// What a program reads, and what differs between ranks; the others are for libraries.
constexpr std::string_view kMainVariables[] = {
    "RANK",        "WORLD_SIZE",  "LOCAL_RANK",      "LOCAL_WORLD_SIZE",     "GROUP_RANK",
    "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "TAAS_OUTPUT_DIR"};

std::string run_folder(const plan::LaunchPlan& plan) {
  return fmt::format("{}/{}", plan.options.output.directory, plan.run_id);
}

bool is_here(const plan::LaunchPlan& plan) { return std::holds_alternative<plan::OneMachine>(plan.launch_mode); }

bool is_bound(const plan::LaunchPlan& plan) { return plan.options.program.numa_binding != NumaBinding::kNone; }

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
    if (name == "OMP_NUM_THREADS" && is_bound(plan)) value = fmt::format("<{} or fewer>", value);
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
  const auto all = plan.options.output.verbosity == plan::Verbosity::kVerbose;
  const auto listed = all ? plan.nodes.size() : std::min(plan.nodes.size(), kMostNodesListed);
  for (const auto& node : std::span(plan.nodes).first(listed)) {
    text += fmt::format("  node {}: ranks {} to {}{}\n", node.index.value, node.first_rank.value,
                        node.first_rank.value + node.local_world_size - 1,
                        is_here(plan) || node.hostname.empty() ? "" : " on " + node.hostname);
  }
  if (listed < plan.nodes.size()) text += fmt::format("  and {} more; --verbose has all\n", plan.nodes.size() - listed);
  return text;
}

int omp_threads(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  return plan::omp_threads(plan::launch_settings(plan, machine, ""), machine, plan.ranks.front());
}

/// The user's own ones too.
bool is_main(const plan::Variable& variable, const plan::FrameworkOptions& options) {
  if (std::ranges::find(kMainVariables, variable.first) != std::end(kMainVariables)) return true;
  const auto names = [&](const std::string& assignment) { return assignment.starts_with(variable.first + "="); };
  return std::ranges::any_of(options.env, names) || std::ranges::any_of(options.rank0_env, names);
}

/// As many in a line as there is room for.
std::string describe_main_variables(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  std::string text = "environment of rank 0, the main part (--verbose shows more)";
  std::size_t column = kColumns;
  for (const auto& variable :
       environment_of(plan, plan::launch_settings(plan, machine, ""), machine, plan.ranks.front())) {
    if (!is_main(variable, plan.options.frameworks)) continue;
    auto word = fmt::format("{}={}", variable.first, as_typed(variable.second));
    const bool fits = column + 1 + word.size() <= kColumns;
    column = fits ? column + 1 + word.size() : 2 + word.size();
    text += (fits ? " " : "\n  ") + word;
  }
  return text + "\n";
}

std::string describe_environment(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  if (plan.options.output.verbosity != plan::Verbosity::kVerbose) return describe_main_variables(plan, machine);
  auto settings = plan::launch_settings(plan, machine, "");
  auto first = environment_of(plan, settings, machine, plan.ranks.front());
  std::string text = "environment of rank 0, over your own\n";
  for (const auto& [name, value] : first) text += fmt::format("  {}={}\n", name, as_typed(value));
  if (plan.world_size() == 1) return text;
  text += "other ranks, where they differ\n";
  auto listed = std::min(plan.ranks.size(), kMostRanksListed);
  for (std::size_t i = 1; i < listed; ++i) {
    text += fmt::format("  rank {}:", i);
    for (const auto& variable : environment_of(plan, settings, machine, plan.ranks[i])) {
      bool same = std::find(first.begin(), first.end(), variable) != first.end();
      if (!same) text += fmt::format(" {}={}", variable.first, as_typed(variable.second));
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

json::value data_as_json(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  const auto& data = plan.options.data;
  if (!data.cpus) return nullptr;
  json::array hosts;
  for (const auto& host : plan.data.hosts) hosts.emplace_back(host.name);
  return {{"cpus", *data.cpus},        {"machines", plan::describe(plan.data, data, machine.cores)},
          {"hosts", std::move(hosts)}, {"units", data.units},
          {"loader", data.loader},     {"buffer_bytes", data.buffer_bytes}};
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
  auto text = describe_environment(plan, machine);
  text += fmt::format("run      {}\n", plan.run_id) + describe_nodes(plan, machine);
  if (is_here(plan)) {
    text += fmt::format("cores    {} usable, {} for each rank\n", machine.cores, omp_threads(plan, machine));
  }
  text += describe_data(plan, machine);
  text += fmt::format("restarts {}\n", plan.options.supervision.max_restarts);
  text += fmt::format("command  {}\n", as_typed(command)) + describe_preload(preload_of(plan, command));
  text += fmt::format("output   {}\n", run_folder(plan));
  for (const auto& notice : plan.notices) text += fmt::format("note     {}\n", notice);
  return text;
}

json::array nodes_as_json(const plan::LaunchPlan& plan) {
  json::array nodes;
  for (const auto& node : plan.nodes) {
    nodes.push_back({{"node", node.index.value},
                     {"hostname", node.hostname},
                     {"simulated", node.simulated},
                     {"first_rank", node.first_rank.value},
                     {"local_world_size", node.local_world_size}});
  }
  return nodes;
}

json::array ranks_as_json(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  auto settings = plan::launch_settings(plan, machine, "");
  json::array ranks;
  for (const auto& rank : plan.ranks) {
    json::object environment;
    for (const auto& [name, value] : environment_of(plan, settings, machine, rank)) environment[name] = value;
    ranks.push_back({{"rank", rank.rank.value},
                     {"node", rank.node.value},
                     {"local_rank", rank.local_rank},
                     {"environment", std::move(environment)}});
  }
  return ranks;
}

std::string as_json(const plan::LaunchPlan& plan, const plan::Machine& machine,
                    const std::vector<std::string>& command) {
  auto preload = preload_of(plan, command).modules;
  json::object object{{"run_id", plan.run_id},
                      {"way", plan::describe(plan.launch_mode)},
                      {"device", plan.device == plan::Device::kGpu ? "gpu" : "cpu"},
                      {"world_size", plan.world_size()},
                      {"gpus", machine.gpus},
                      {"devices_per_rank", plan.options.size.devices_per_rank},
                      {"cores", machine.cores},
                      {"omp_threads", omp_threads(plan, machine)},
                      {"max_restarts", plan.options.supervision.max_restarts},
                      {"command", json::array(command.begin(), command.end())},
                      {"preload", json::array(preload.begin(), preload.end())},
                      {"output", run_folder(plan)},
                      {"min_nodes", plan.min_nodes},
                      {"spares", plan.spares},
                      {"data", data_as_json(plan, machine)},
                      {"notices", json::array(plan.notices.begin(), plan.notices.end())},
                      {"nodes", nodes_as_json(plan)},
                      {"ranks", ranks_as_json(plan, machine)}};
  return valid_utf8(json::serialize(object)) + "\n";
}

}  // namespace

std::string dry_run(const plan::LaunchPlan& plan, const plan::Machine& machine,
                    const std::vector<std::string>& command) {
  return plan.options.output.json ? as_json(plan, machine, command) : as_text(plan, machine, command);
}

}  // namespace taas::cli
