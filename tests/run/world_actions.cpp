#include <algorithm>
#include <csignal>

#include "world.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLateness = 50ms;     // of the timer, with repetitions
constexpr Duration kLongestDeath = 31s;  // between SIGKILL and giving up on a process

}  // namespace

void World::act(const GatherNodes& /*action*/) {
  require(alive_in(generation_) == 0, "nodes are gathered while the former generation lives");
  later(random_.up_to(random_.chance(80) ? 10ms : 5s), [this] {
    post(NodesGathered{policy_.world_size, policy_.node_of_rank, {}, now_});
  });
}

void World::act(const StartGeneration& action) {
  require(action.generation.value == generation_.value + 1, "a generation is left out or started twice");
  require(action.generation.value <= policy_.max_restarts, "more restarts than allowed");
  require(alive_in(generation_) == 0, "processes of the former generation live on");
  require(stopped_by_ == 0, "restarted after the user had stopped the run");
  generation_ = action.generation;
  ++outcome_.generations;
  spawning_ = true;
  to_spawn_ = policy_.world_size;
  stopped_at_ = killed_at_ = Instant{};
  gone_wanted_ = failed_ = gave_up_allowed_ = false;
  faults_.clear();
  Duration delay{};
  bool slow = random_.chance(10);
  for (int rank = 0; rank < policy_.world_size; ++rank) {
    delay += random_.up_to(slow ? Duration(100ms) : Duration(500us));
    later(delay, [this, rank, generation = generation_, plan = draw_plan(random_, trouble_)] {
      spawn(generation, Rank{rank}, plan);
    });
  }
}

void World::act(const SignalRanks& action) {
  require(action.generation == generation_, "signals for another generation");
  require(!action.ranks.empty(), "a signal for nobody");
  for (Rank rank : action.ranks) {
    auto found = std::find_if(processes_.begin(), processes_.end(), [&](const auto& process) {
      return process->generation == generation_ && process->rank == rank && !process->grandchild;
    });
    require(found != processes_.end() && (*found)->alive, "a signal for a rank that does not live");
    if (found != processes_.end()) deliver(**found, action.signal);
  }
}

void World::act(const KillGeneration& action) {
  bool first = killed_at_ == Instant{} && any_rank_lives();
  require(!first || now_ <= stopped_at_ + policy_.shutdown_timeout + kLateness,
          "killed long after the shutdown timeout");
  sweep(action.generation, SIGKILL);
}

void World::act(const SweepGeneration& action) {
  require(!any_rank_lives(), "swept while ranks live");
  sweep(action.generation, action.signal);
}

void World::act(const SetDeadline& action) {
  deadline_set_ = true;
  // A timer may be late, or early by a little; then it has run out all the same.
  Duration error = random_.chance(10) ? -random_.up_to(1ms) : random_.up_to(20ms);
  later(std::max(action.at - now_ + error, Duration{}), [this, mine = ++deadline_] {
    if (!deadline_set_ || mine != deadline_) return;
    deadline_set_ = false;
    feed(DeadlineReached{now_});
  });
}

void World::act(const ClearDeadline&) { deadline_set_ = false; }

void World::act(const SettleOutput&) {
  require(!settling_, "output is settled twice");
  bool in_time = killed_at_ == Instant{} || now_ <= killed_at_ + kLongestDeath;
  require(in_time, "what cannot be killed is waited for too long");
  settling_ = true;
  output_lost_ = random_.chance(10);
  later(random_.up_to(random_.chance(90) ? 1s : 90s), [this] {
    settled_ = true;
    post(OutputSettled{output_lost_ ? "no space left on device" : "", now_});
  });
}

void World::act(const Notify& action) { require(!action.text.empty(), "nothing is told"); }

void World::act(const ReportFailure& action) {
  require(failed_, "a failure is reported, but nothing has failed");
  require(stopped_by_ == 0, "a failure is reported though the user had stopped the run before");
  reported_ = true;
  check_culprit(action.verdict);
  if (action.restarting)
    require(action.verdict.cause != Cause::kExecFailed, "restarts a program that cannot be executed");
}

void World::act(const Finish& action) {
  outcome_.finished = true;
  outcome_.verdict = action.verdict;
  outcome_.length = now_ - kStart;
  check_end(action.verdict);
}

}  // namespace taas::run
