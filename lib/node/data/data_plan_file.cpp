#include <algorithm>

#include "net/addresses.hpp"
#include "node/data/data_delivery_state.hpp"

namespace taas::node {
namespace {

constexpr auto kWorkerProbePatience = std::chrono::seconds(3);
constexpr auto kProbeAgain = std::chrono::seconds(2);

}  // namespace

void DataDelivery::set_world_size(int world_size) {
  if (std::exchange(state_->options.settings.world_size, world_size) != world_size) state_->write_plan_or_remark();
}

/// The list only grows, but for those that have gone, whose places stay.
void DataDelivery::use(const run::DataWorkers& list) {
  State& state = *state_;
  state.list = list;
  for (const auto& worker : list.workers) state.find_address(worker);
  if (state.places.empty()) state.places = state.own_places();
  state.write_plan_or_remark();
  if (state.outcome) state.say(*state.outcome);
  if (state.places.empty() || state.workers) return;
  auto started = state.start_workers();
  if (!started) state.say(run::Remark{started.error().message});
}

/// Of a machine's addresses the first that this one reaches; which one that is differs from node to node.
void DataDelivery::State::find_address(const run::DataWorker& worker) {
  if (worker.addresses.empty()) {
    nodes.erase(worker.node);
    return;
  }
  if (worker.node == options.instance || nodes.contains(worker.node)) return;
  nodes[worker.node].again = std::make_unique<Timer>(io, [this, worker] { probe(worker); });
  probe(worker);
}

void DataDelivery::State::probe(const run::DataWorker& worker) {
  nodes[worker.node].probing = net::probe(
      io, worker.addresses, worker.port, kWorkerProbePatience,
      [this, worker](std::vector<std::string> reached, const std::string&) { probed(worker, std::move(reached)); });
}

void DataDelivery::State::probed(const run::DataWorker& worker, std::vector<std::string> reached) {
  auto& found = nodes[worker.node];
  if (reached.empty()) {
    if (!std::exchange(found.told, true)) {
      say(run::Remark{"no address of " + worker.name + " can be reached from here; it is tried again and again"});
    }
    return found.again->set(steady_now() + kProbeAgain);
  }
  found.address = std::move(reached.front());
  write_plan_or_remark();
}

/// Where the coordinator has put the workers of this machine, in the order of their ports.
std::vector<int> DataDelivery::State::own_places() const {
  std::vector<int> own;
  for (std::size_t place = 0; place < list.workers.size(); ++place) {
    bool here = !options.instance.empty() && list.workers[place].node == options.instance;
    if (here && own.size() < listeners.size()) own.push_back(static_cast<int>(place));
  }
  return own;
}

DataPlanWorker DataDelivery::State::entry_of(const run::DataWorker& worker, int place) const {
  DataPlanWorker entry;
  entry.name = worker.name;
  if (!options.instance.empty() && worker.node == options.instance) {
    auto index = std::find(places.begin(), places.end(), place) - places.begin();
    if (index >= static_cast<std::ptrdiff_t>(listeners.size())) return entry;
    const auto& own = listeners[static_cast<std::size_t>(index)];
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

}  // namespace taas::node
