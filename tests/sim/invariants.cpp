#include <fmt/format.h>

#include <algorithm>

#include "cluster.hpp"

namespace taas::sim {

void Cluster::require(bool holds, const std::string& what) {
  if (!holds)
    outcome_.violations.push_back(
        fmt::format("at {:.6f} s: {}", seconds(agenda_.now().time_since_epoch()) - 1000, what));
}

/// At most one generation has living ranks. A frozen machine's cannot run, and are killed when it thaws.
void Cluster::check_spawn(int number, const SimulatedRank& rank, const run::StartRanks& start) {
  require(rank.generation >= generation_,
          fmt::format("host{} starts generation {} when {} runs", number, rank.generation.value, generation_.value));
  require(spawned_.insert(rank.rank).second, fmt::format("rank {} is started twice", rank.rank.value));
  require(rank.rank.value >= 0 && rank.rank.value < start.world_size, "a rank outside of the world");
  if (living_.size() == 1) return;
  for (const auto& host : nodes_) {
    if (host->excused()) continue;
    bool former = std::any_of(host->ranks().begin(), host->ranks().end(),
                              [&](const auto& other) { return other->alive && other->generation != rank.generation; });
    require(!former, fmt::format("generation {} starts on host{} while ranks of a former one live on {}",
                                 rank.generation.value, number, host->hello().hostname));
  }
}

/// Each rank and each node is given out exactly once, rank 0 to the first node.
void Cluster::check_start(const std::vector<run::CoordinatorAction>& decided) {
  std::vector<const run::StartRanks*> starts;
  std::map<int, int> seats;
  std::set<int> ranks;
  for (const auto& action : decided) {
    const auto* tell = std::get_if<run::Tell>(&action);
    const auto* start = tell == nullptr ? nullptr : std::get_if<run::StartRanks>(&tell->message);
    if (start == nullptr) continue;
    starts.push_back(start);
    for (const auto& share : start->shares) {
      require(seats.emplace(share.node.value, connections_.at(tell->agent).node).second, "a node is given out twice");
      for (int i = 0; i < share.local_world_size; ++i) {
        require(ranks.insert(share.first_rank.value + i).second, "a rank is given out twice");
      }
      require(share.node.value != 0 || share.first_rank.value == 0, "rank 0 is not on the first node");
    }
  }
  for (const auto& [index, machine] : seats) require(!is_data(machine), "a CPU machine is given ranks");
  if (starts.empty()) return;
  const auto& first = *starts.front();
  require(first.generation.value == generation_.value + 1, "a generation is left out or started twice");
  bool whole = static_cast<int>(ranks.size()) == first.world_size && *ranks.rbegin() == first.world_size - 1;
  require(whole, "not every rank is given out");
  require(static_cast<int>(seats.size()) == first.nodes, "not every node is given out");
  require(first.nodes >= settings_.policy.min_nodes, "too few nodes");
  generation_ = first.generation;
  ++outcome_.generations;
  spawned_.clear();
  broken_ranks_.clear();
  broken_ = false;
  seat_.clear();
  for (const auto& [index, machine] : seats) seat_.push_back(machine);
  bool sorted = std::is_sorted(seat_.begin(), seat_.end());
  require(generation_.value > 0 || !settings_.ordered || sorted, "nodes are not in the order of the list");
}

void Cluster::check_failure(const run::Verdict& verdict) {
  require(verdict.exit_code != 0, "a failure returns 0");
  if (verdict.cause == run::Cause::kNodeLost) {
    auto index = static_cast<std::size_t>(verdict.node.value);
    bool known = index < seat_.size();
    require(known && blamed_nodes_.contains(seat_[index]), "a node is blamed that nothing has happened to");
    return;
  }
  if (verdict.cause == run::Cause::kNodesMissing) {
    require(missing_allowed_ || settings_.longest_start > settings_.policy.gather_timeout,
            "nodes are missed: " + verdict.summary);
    return;
  }
  require(broken_ranks_.contains(verdict.culprit), "a rank is blamed that nothing has happened to: " + verdict.summary);
}

/// A worker keeps its place, and its name, for good.
void Cluster::check_workers(const run::DataWorkers& list) {
  require(list.workers.size() >= workers_.workers.size(), "the list of data workers has become shorter");
  for (std::size_t i = 0; i < workers_.workers.size() && i < list.workers.size(); ++i) {
    require(list.workers[i].name == workers_.workers[i].name, "a data worker has another place");
  }
  workers_ = list;
}

/// Where nothing goes wrong all of them are there soon.
void Cluster::check_workers_at_the_end() {
  bool calm = settings_.node_faults == 0 && settings_.refusals == 0 && settings_.versions_apart == 0;
  if (!calm || outcome_.length < settings_.longest_start + std::chrono::seconds(2)) return;
  require(workers_.workers.size() == 2 * static_cast<std::size_t>(settings_.data_nodes), "data workers are missing");
  for (const auto& worker : workers_.workers) require(!worker.addresses.empty(), "a data worker has no address");
}

void Cluster::check_end() {
  check_workers_at_the_end();
  require(outcome_.finished, "the run never ends");
  for (const auto& host : nodes_) {
    require(host->living() == 0, fmt::format("ranks on {} outlive the run", host->hello().hostname));
    require(!host->agent_runs(), fmt::format("the agent of {} never leaves", host->hello().hostname));
  }
  if (!outcome_.finished) return;
  bool well = outcome_.verdict.exit_code == 0;
  require(well == (outcome_.verdict.cause == run::Cause::kSuccess), "exit code and cause do not fit");
  require(!well || !broken_, "a generation that broke is called a success");
  require(outcome_.verdict.cause != run::Cause::kStopped || stopped_, "nobody has stopped the run");
}

}  // namespace taas::sim
