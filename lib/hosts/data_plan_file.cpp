#include <algorithm>

#include "hosts/data_delivery_state.hpp"
#include "net/addresses.hpp"

namespace taas::hosts {
namespace {

constexpr auto kProbePatience = std::chrono::seconds(3);

}  // namespace

void DataDelivery::set_world_size(int world_size) {
  if (std::exchange(state_->options.settings.world_size, world_size) != world_size) state_->write_plan_or_remark();
}

/// The list only grows, but for those that have gone, whose places stay.
void DataDelivery::use(const run::DataWorkers& list) {
  State& state = *state_;
  state.list = list;
  for (const auto& worker : list.workers) state.find_address(worker);
  state.write_plan_or_remark();
  auto own = std::find_if(list.workers.begin(), list.workers.end(),
                          [&](const auto& worker) { return worker.node == state.options.instance; });
  bool there = own != list.workers.end() && !state.options.instance.empty();
  if (!there || state.workers || state.options.workers == 0) return;
  auto started = state.start_workers(static_cast<int>(own - list.workers.begin()));
  if (!started) state.say(run::Remark{started.error().message});
}

/// Of a machine's addresses the first that this one reaches; which one that is differs from node to node.
void DataDelivery::State::find_address(const run::DataWorker& worker) {
  if (worker.addresses.empty()) {
    nodes.erase(worker.node);
    return;
  }
  if (worker.node == options.instance || nodes.contains(worker.node)) return;
  auto& found = nodes[worker.node];
  found.probing =
      net::probe(io, worker.addresses, worker.port, kProbePatience,
                 [this, node = worker.node, name = worker.name](std::vector<std::string> reached, const std::string&) {
                   if (reached.empty()) return say(run::Remark{"no address of " + name + " can be reached from here"});
                   nodes[node].address = std::move(reached.front());
                   write_plan_or_remark();
                 });
}

DataPlanWorker DataDelivery::State::entry_of(const run::DataWorker& worker, int place) const {
  DataPlanWorker entry;
  entry.name = worker.name;
  if (!options.instance.empty() && worker.node == options.instance) {
    const auto& own = listeners.at(static_cast<std::size_t>(place - first_place));
    entry.address = worker.addresses.empty() ? "" : worker.addresses.front();
    entry.port = own.port;
    entry.unix_path = own.unix_path;
    return entry;
  }
  auto found = nodes.find(worker.node);
  if (found == nodes.end() || found->second.address.empty()) return entry;
  entry.address = found->second.address;
  entry.port = worker.port;
  return entry;
}

std::vector<DataPlanWorker> DataDelivery::State::entries() const {
  std::vector<DataPlanWorker> entries;
  if (options.simulated_machines > 0) {
    for (int index = 0; index < options.workers; ++index) {
      const auto& own = listeners[static_cast<std::size_t>(index)];
      entries.push_back({name_of(index), options.listen_address, own.port, own.unix_path});
    }
    return entries;
  }
  for (const auto& worker : list.workers) entries.push_back(entry_of(worker, static_cast<int>(entries.size())));
  return entries;
}

Result<> DataDelivery::State::write_plan() {
  DataPlan plan;
  plan.run_id = options.settings.run_id;
  plan.key = options.key;
  plan.options = options.settings.options.data;
  plan.world_size = options.settings.world_size;
  plan.workers = entries();
  return write_data_plan(folder.path() + "/plan.json", plan);
}

void DataDelivery::State::write_plan_or_remark() {
  if (auto written = write_plan(); !written) say(run::Remark{written.error().message});
}

}  // namespace taas::hosts
