#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string.h>

#include <algorithm>
#include <csignal>
#include <string_view>

#include "plan/launch_plan.hpp"
#include "plan/numbers.hpp"

namespace taas::plan {
namespace {

std::optional<std::string> find(const Machine& machine, const char* name) {
  auto found = machine.environment.find(name);
  if (found == machine.environment.end()) return std::nullopt;
  return found->second;
}

/// Sets variables, and collects those of which the user's own value wins.
class Writer {
 public:
  explicit Writer(const Machine& machine) : machine_(machine) {}

  void set(const char* name, std::string value) { variables_.emplace_back(name, std::move(value)); }
  void set(const char* name, int value) { set(name, std::to_string(value)); }
  void set_default(const char* name, std::string value) {
    if (!machine_.environment.contains(name)) set(name, std::move(value));
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

void set_ranks(Writer& writer, const LaunchPlan& plan, const RankPlan& rank, const NodePlan& node) {
  const auto& rendezvous = plan.options.rendezvous;
  auto nodes = static_cast<int>(plan.nodes.size());
  writer.set("RANK", rank.rank.value);
  writer.set("WORLD_SIZE", plan.world_size());
  writer.set("LOCAL_RANK", rendezvous.virtual_local_rank ? 0 : rank.local_rank);
  writer.set("LOCAL_WORLD_SIZE", node.local_world_size);
  writer.set("GROUP_RANK", node.index.value);
  writer.set("GROUP_WORLD_SIZE", nodes);
  writer.set("NODE_RANK", node.index.value);
  writer.set("ROLE_NAME", rendezvous.role);
  writer.set("ROLE_RANK", rank.rank.value);
  writer.set("ROLE_WORLD_SIZE", plan.world_size());
  writer.set("LOCAL_SIZE", node.local_world_size);
  writer.set("CROSS_RANK", node.index.value);
  writer.set("CROSS_SIZE", nodes);
}

void set_elastic(Writer& writer, const LaunchPlan& plan, Generation generation, const RunAddresses& addresses) {
  const auto& supervision = plan.options.supervision;
  writer.set("MASTER_ADDR", addresses.master_addr);
  writer.set("MASTER_PORT", addresses.master_port);
  writer.set("TORCHELASTIC_RUN_ID", plan.run_id);
  writer.set("TORCHELASTIC_RESTART_COUNT", generation.value);
  writer.set("TORCHELASTIC_MAX_RESTARTS", supervision.max_restarts);
  writer.set("TORCHELASTIC_USE_AGENT_STORE", std::string(addresses.agent_store ? "True" : "False"));
  writer.set("TORCHELASTIC_ERROR_FILE", addresses.error_file);
  writer.set("TORCHELASTIC_SIGNALS_TO_HANDLE", signal_names(supervision.signals_to_handle));
}

std::string_view trim(std::string_view text) {
  auto first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Devices of the launcher itself, in the order that CUDA numbers them: a subset given to a rank is named by these.
std::vector<std::string> visible_devices(const Machine& machine, const char* variable) {
  std::vector<std::string> devices;
  if (auto value = find(machine, variable)) {
    for (auto entry : split(*value, ',')) devices.emplace_back(trim(entry));
    devices.resize(std::min(devices.size(), static_cast<std::size_t>(machine.gpus)));  // from a bad entry on: ignored
  } else {
    for (int device = 0; device < machine.gpus; ++device) devices.push_back(std::to_string(device));
  }
  return devices;
}

/// The devices of one rank: its own under --virtual-local-rank, its node's share where this machine plays several
/// nodes (each of them counts local ranks from 0), else all.
std::vector<std::string> devices_of(const LaunchPlan& plan, const RankPlan& rank, const NodePlan& node,
                                    const std::vector<std::string>& all) {
  bool own = plan.options.rendezvous.virtual_local_rank;
  int first = node.first_rank.value + (own ? rank.local_rank : 0);
  int count = own ? 1 : node.local_world_size;
  std::vector<std::string> devices;
  for (int i = 0; i < std::min(count, static_cast<int>(all.size())); ++i) {
    devices.push_back(all[static_cast<std::size_t>(first + i) % all.size()]);
  }
  return devices;
}

void set_devices(Writer& writer, const LaunchPlan& plan, const Machine& machine, const RankPlan& rank,
                 const NodePlan& node) {
  bool own = plan.options.rendezvous.virtual_local_rank;
  if (machine.gpus == 0) {  // as torchrun does: the number of the GPU that the rank would have
    if (own) writer.set_default("CUDA_VISIBLE_DEVICES", std::to_string(rank.local_rank));
    return;
  }
  if (!own && (plan.device == Device::kCpu || plan.nodes.size() == 1)) return;
  bool hip = !find(machine, "HIP_VISIBLE_DEVICES").value_or("").empty();  // it wins over CUDA's on ROCm
  auto all = visible_devices(machine, hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
  auto list = fmt::format("{}", fmt::join(devices_of(plan, rank, node, all), ","));
  if (hip) writer.set("HIP_VISIBLE_DEVICES", list);
  writer.set("CUDA_VISIBLE_DEVICES", list);
}

void set_defaults(Writer& writer, const LaunchPlan& plan, const RunAddresses& addresses) {
  writer.set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  writer.set_default("OMP_NUM_THREADS", std::to_string(plan.omp_threads));
  // With all ranks on this machine Gloo needs no other interface. Left alone it looks the machine's name up, which is
  // slow or fails where the name does not resolve. NCCL finds its way by itself.
  bool loopback = addresses.master_addr == "localhost" || addresses.master_addr.starts_with("127.");
  if (loopback) writer.set_default("GLOO_SOCKET_IFNAME", "lo");
}

}  // namespace

std::vector<Variable> rank_environment(const LaunchPlan& plan, const Machine& machine, Rank rank, Generation generation,
                                       const RunAddresses& addresses) {
  const auto& planned = plan.ranks[static_cast<std::size_t>(rank.value)];
  const auto& node = plan.nodes[static_cast<std::size_t>(planned.node.value)];
  Writer writer(machine);
  set_ranks(writer, plan, planned, node);
  set_elastic(writer, plan, generation, addresses);
  set_defaults(writer, plan, addresses);
  set_devices(writer, plan, machine, planned, node);
  writer.set("TAAS_OUTPUT_DIR", addresses.output_directory);
  writer.set("TAAS_RUN_ID", plan.run_id);
  return std::move(writer).take();
}

}  // namespace taas::plan
