#include "node/looks/rank_watch.hpp"

#include <algorithm>
#include <utility>

#include "proc/machine/gpu_driver.hpp"

namespace taas::node {
namespace {

// Of one interval. What polls twice a second moves; a loop over a DataLoader whose workers give nothing looks after
// them every five seconds.
constexpr std::uint64_t kFewSwitches = 3;
constexpr double kLittleTime = 0.1;  // of it
constexpr int kQuietIntervals = 2;
constexpr auto kDriverPatience = std::chrono::seconds(1);

void add_gpus(const std::vector<RankLooker::Target>& targets, bool by_bus, std::vector<run::RankLook>& looks) {
  std::vector<std::string> names;
  std::vector<Rank> ranks;
  for (const auto& target : targets) {
    if (target.gpu.empty()) continue;
    names.push_back(target.gpu);
    ranks.push_back(target.rank);
  }
  const auto uses = use_of_gpus(names, by_bus, kDriverPatience);
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto look = std::ranges::find(looks, ranks[i], &run::RankLook::rank);
    if (!uses[i] || look == looks.end()) continue;
    look->gpu_percent = uses[i]->busy_percent;
    look->gpu_bytes = uses[i]->used_bytes;
  }
}

}  // namespace

RankMotionSensor::Change RankMotionSensor::add(const RunTimes& times, Instant at) {
  const auto before = std::exchange(last_, times);
  const auto before_at = std::exchange(last_at_, at);
  if (before_at == Instant{}) {
    since_ = at;
    return Change::kNone;
  }
  const auto used = std::chrono::nanoseconds(times.run_ns + times.queued_ns - before.run_ns - before.queued_ns);
  const bool quiet =
      times.switches - before.switches < kFewSwitches && seconds(used) < kLittleTime * seconds(at - before_at);
  if (!quiet) {
    quiet_ = 0;
    if (!std::exchange(still_, false)) return Change::kNone;
    since_ = before_at;
    return Change::kMoves;
  }
  if (still_) return Change::kNone;
  if (++quiet_ == 1) since_ = before_at;
  if (quiet_ < kQuietIntervals) return Change::kNone;
  still_ = true;
  return Change::kStill;
}

RankWatch::RankWatch(boost::asio::io_context& io, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), next_(io, [this] { sense(); }), thread_(io) {}

void RankWatch::begin(Generation generation) {
  generation_ = generation;
  sensors_.clear();
  next_.set(steady_now() + RankMotionSensor::kInterval);
}

void RankWatch::end() {
  sensors_.clear();
  next_.clear();
}

void RankWatch::sense() {
  const auto now = steady_now();
  for (const auto& target : callbacks_.living()) {
    const auto times = read_run_times(target.pid);
    if (!times) continue;
    auto& sensor = sensors_[target.pid];
    const auto change = sensor.add(*times, now);
    if (change == RankMotionSensor::Change::kNone) continue;
    callbacks_.say(
        run::RankMotion{generation_, target.rank, change == RankMotionSensor::Change::kMoves, sensor.since()});
  }
  next_.set(now + RankMotionSensor::kInterval);
}

void RankWatch::look(const run::LookAtRanks& request) {
  auto targets = callbacks_.living();
  if (request.rank >= 0) std::erase_if(targets, [&](const auto& target) { return target.rank.value != request.rank; });
  if (request.rank < 0) {
    for (auto& worker : callbacks_.data_workers()) targets.push_back(std::move(worker));
  }
  if (!looker_) looker_ = std::make_shared<RankLooker>();
  const auto detail = request.rank >= 0 ? RankLooker::Detail::kEverything : RankLooker::Detail::kWhatMatters;
  auto seen = std::make_shared<run::RanksSeen>(run::RanksSeen{request.generation, request.number, {}});
  const bool gpus = request.gpus, native = request.native, by_bus = callbacks_.gpus_by_bus;
  thread_.run(
      [=, looker = looker_] {
        seen->looks = looker->look(targets, detail, native);
        if (gpus) add_gpus(targets, by_bus, seen->looks);
      },
      [=, this] { callbacks_.say(std::move(*seen)); });
}

}  // namespace taas::node
