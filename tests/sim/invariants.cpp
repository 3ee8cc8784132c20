#include <fmt/format.h>

#include <algorithm>

#include "cluster.hpp"

namespace taas::sim {
namespace {

constexpr Duration kClockError = std::chrono::milliseconds(5);

}  // namespace

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
  std::vector<const run::Tell*> told;
  std::map<int, int> seats;
  std::set<int> ranks;
  for (const auto& action : decided) {
    const auto* tell = std::get_if<run::Tell>(&action);
    const auto* start = tell == nullptr ? nullptr : std::get_if<run::StartRanks>(&tell->message);
    if (start == nullptr) continue;
    starts.push_back(start);
    told.push_back(tell);
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
  check_duties(told);
  const auto& first = *starts.front();
  require(first.generation.value == generation_.value + 1, "a generation is left out or started twice");
  bool whole = static_cast<int>(ranks.size()) == first.world_size && *ranks.rbegin() == first.world_size - 1;
  require(whole, "not every rank is given out");
  require(static_cast<int>(seats.size()) == first.nodes, "not every node is given out");
  require(first.nodes >= settings_.policy.min_nodes, "too few nodes");
  generation_ = first.generation;
  started_ = agenda_.now();
  ++outcome_.generations;
  spawned_.clear();
  broken_ranks_.clear();
  broken_ = false;
  seat_.clear();
  for (const auto& [index, machine] : seats) seat_.push_back(machine);
  bool sorted = std::is_sorted(seat_.begin(), seat_.end());
  require(generation_.value > 0 || !settings_.ordered || sorted, "nodes are not in the order of the list");
}

/// Of the nodes that see a folder by one kernel exactly one publishes; rank 0's has the final names, and no other one
/// writes there.
void Cluster::check_duties(const std::vector<const run::Tell*>& starts) {
  std::map<std::pair<std::string, std::string>, int> publishers;  // by folder and view
  std::string first;
  for (const auto* tell : starts) {
    const auto& start = std::get<run::StartRanks>(tell->message);
    publishers[{folder_of(tell->agent), view_of(tell->agent)}] += start.output.publishes ? 1 : 0;
    bool has_rank_0 = start.shares.front().first_rank.value == 0;
    if (has_rank_0) first = folder_of(tell->agent);
  }
  for (const auto& [place, count] : publishers) {
    require(count == 1, fmt::format("not one node publishes what {} tells of {}", place.second, place.first));
  }
  for (const auto* tell : starts) {
    const auto& duty = std::get<run::StartRanks>(tell->message).output;
    if (!duty.publishes) continue;
    const auto& folder = folder_of(tell->agent);
    bool apart = folder != settings_.policy.folder;
    require(duty.delivers == apart, "who sees another folder delivers, and nobody else");
    require(!apart || receiving_.contains(tell->agent), "nobody takes what a node delivers");
    require((duty.folder == "output") == (apart || folder == first), "files get final names beside rank 0's");
  }
}

/// Whatever ranks of the last generation wrote is where it belongs.
void Cluster::check_output_at_the_end() {
  bool apart = false;
  for (int machine : seat_) {
    const auto& folder = node(machine).folder;
    require(settled_.contains(folder), "a run ends well, and output stays in the folder of " + folder);
    apart = apart || folder != node(seat_.front()).folder;
  }
  require(!apart || placed_, "a run ends well, and files did not get their names");
}

void Cluster::check_failure(const run::Verdict& verdict) {
  require(verdict.exit_code != 0, "a failure returns 0");
  if (verdict.cause == run::Cause::kNodeLost) {
    auto index = static_cast<std::size_t>(verdict.node.value);
    bool known = index < seat_.size();
    require(known && losable_nodes_.contains(seat_[index]), "a node is lost to which nothing serious has happened");
    return;
  }
  if (verdict.cause == run::Cause::kNodesMissing) {
    constexpr auto kToBeReady = std::chrono::seconds(1);  // besides the disk
    const auto last_ready = settings_.longest_start + settings_.disk + kToBeReady;
    require(missing_allowed_ || last_ready > settings_.policy.gather_timeout, "nodes are missed: " + verdict.summary);
    return;
  }
  require(broken_ranks_.contains(verdict.culprit), "a rank is blamed that nothing has happened to: " + verdict.summary);
  if (broken_ranks_.contains(verdict.culprit)) check_first(verdict.culprit, verdict.summary);
}

/// Nothing has happened to another rank before. What happens on a machine whose network is disturbed may never be heard
/// of, and clocks of machines are known to within a part of a message's way.
void Cluster::check_first(Rank culprit, const std::string& summary) {
  auto at = broken_ranks_.at(culprit);
  for (const auto& [rank, other_at] : broken_ranks_) {
    bool heard_of = std::none_of(nodes_.begin(), nodes_.end(), [&, of = rank](const auto& host) {
      bool here =
          std::any_of(host->ranks().begin(), host->ranks().end(), [of](const auto& one) { return one->rank == of; });
      return here && blamed_nodes_.contains(host->number());
    });
    bool earlier = at - other_at > kClockError;
    require(!heard_of || !earlier, fmt::format("rank {} is blamed, but rank {} broke {:.1f} ms before: {}",
                                               culprit.value, rank.value, 1e3 * seconds(at - other_at), summary));
  }
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
  bool calm = !settings_.suspension && settings_.node_faults == 0 && settings_.refusals == 0 &&
              settings_.versions_apart == 0 && settings_.stalls == 0;
  const bool began = outcome_.generations > 0;  // nodes are waited for with more patience than the run may have
  if (!calm || !began || outcome_.length < settings_.longest_start + settings_.disk + std::chrono::seconds(2)) return;
  require(workers_.workers.size() == 2 * static_cast<std::size_t>(settings_.data_nodes), "data workers are missing");
  for (const auto& worker : workers_.workers) require(!worker.addresses.empty(), "a data worker has no address");
}

/// A batch system looks at each node's exit code: none may call a run otherwise than it ended.
void Cluster::check_exit_codes() {
  for (int number : told_at_the_end_) {
    auto left = left_with_.find(number);
    int code = left == left_with_.end() ? -1 : left->second;
    require(code == outcome_.verdict.exit_code,
            fmt::format("the agent of host{} ends with {}, the run with {}", number, code, outcome_.verdict.exit_code));
  }
}

void Cluster::check_end() {
  check_workers_at_the_end();
  check_exit_codes();
  require(outcome_.finished, "the run never ends");
  for (const auto& host : nodes_) {
    require(host->living() == 0, fmt::format("ranks on {} outlive the run", host->hello().hostname));
    require(!host->agent_runs(), fmt::format("the agent of {} never leaves", host->hello().hostname));
  }
  if (!outcome_.finished) return;
  bool well = outcome_.verdict.exit_code == 0;
  require(well == (outcome_.verdict.cause == run::Cause::kSuccess), "exit code and cause do not fit");
  require(!well || !broken_, "a generation that broke is called a success");
  if (well) check_output_at_the_end();
  require(outcome_.verdict.cause != run::Cause::kStopped || stopped_, "nobody has stopped the run");
}

}  // namespace taas::sim
