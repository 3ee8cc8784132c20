#include <algorithm>
#include <cerrno>
#include <csignal>

#include "world.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kUnkillable = 25s;  // from here on the supervisor may give up on a process

}  // namespace

void World::spawn(Generation generation, Rank rank, const RankPlan& plan) {
  if (generation != generation_ || !spawning_) return;
  --to_spawn_;
  if (plan.fate == RankPlan::Fate::kCannotStart) {
    spawning_ = false;
    to_spawn_ = 0;
    if (!failed_ && stopped_by_ == 0) faults_.push_back({rank, now_, false, plan.code == ENOENT ? 127 : 126});
    failed_ = failed_ || stopped_by_ == 0;
    return post(RankSpawnFailed{generation, rank, plan.code, "cannot execute ./x: it is not there", now_});
  }
  processes_.push_back(std::make_unique<Process>(Process{generation, rank, plan}));
  Process& process = *processes_.back();
  live(process);
  newcomer_ = rank;
  post(RankSpawned{generation, rank, 100 + rank.value, now_});
}

void World::live(Process& process) {
  const RankPlan& plan = process.plan;
  later(plan.acts_after, [this, &process] {
    if (!process.alive || process.ending) return;
    const RankPlan& mine = process.plan;
    if (mine.fate == RankPlan::Fate::kRaises) raise(process);
    if (mine.fate == RankPlan::Fate::kExits) end(process, {mine.code});
    if (mine.fate == RankPlan::Fate::kDies) end(process, {0, mine.signal});
    if (mine.fate == RankPlan::Fate::kSucceeds || mine.fate == RankPlan::Fate::kDeserts) end(process, {});
  });
  if (!plan.joins_after) return;
  later(*plan.joins_after, [this, &process] {
    if (!process.alive) return;
    post(StoreReached{process.generation, now_});
    post(RankJoined{process.generation, process.rank, now_});
  });
}

/// Between its last words and its exit a rank may close its connections at any moment.
void World::raise(Process& process) {
  process.ending = true;
  process.told = words_of_raise(now_);
  if (!failed_ && stopped_by_ == 0) faults_.push_back({process.rank, now_, false, 1});
  later(random_.up_to(process.plan.cleans_up_for), [this, &process] { lose_peers(process); });
  later(process.plan.cleans_up_for, [this, &process] { end(process, {1}); });
}

void World::lose_peers(const Process& gone) {
  for (auto& other : processes_) {
    bool connected = other->generation == gone.generation && other->rank != gone.rank && !other->grandchild;
    if (!connected || !other->alive || !other->plan.notices_lost_peer_after) continue;
    later(*other->plan.notices_lost_peer_after + 1us, [this, process = other.get()] {
      if (!process->alive || process->ending) return;
      process->ending = true;
      process->told = words_of_lost_peer(now_);
      if (!failed_ && stopped_by_ == 0) faults_.push_back({process->rank, now_, true, 1});
      later(random_.up_to(400ms), [this, process] { end(*process, {1}); });
    });
  }
}

void World::deliver(Process& process, int signal) {
  if (!process.alive || signal == SIGUSR1 || signal == SIGUSR2) return;
  const RankPlan& plan = process.plan;
  if (signal == SIGKILL) {
    gave_up_allowed_ = gave_up_allowed_ || plan.survives_kill_for > kUnkillable;
    return later(plan.survives_kill_for + random_.up_to(5ms), [this, &process] { end(process, {0, SIGKILL}); });
  }
  auto how = process.grandchild ? *plan.leaves_behind : plan.on_stop;
  ExitStatus status{how == RankPlan::OnStop::kEndsBadly ? 1 : 0, how == RankPlan::OnStop::kDies ? signal : 0};
  if (how != RankPlan::OnStop::kIgnores) later(plan.stops_after, [this, &process, status] { end(process, status); });
}

void World::sweep(Generation generation, int signal) {
  require(generation == generation_, "sweeps another generation");
  if (signal == SIGKILL) {
    spawning_ = false;
    to_spawn_ = 0;
    if (killed_at_ == Instant{}) killed_at_ = now_;
  }
  gone_wanted_ = true;
  for (auto& process : processes_) {
    if (signal != 0) deliver(*process, signal);
    // Some of what ranks leave behind ends by itself.
    if (signal == 0 && process->alive && random_.chance(50)) {
      later(random_.up_to(3s), [this, raw = process.get()] { end(*raw, {}); });
    }
  }
  check_gone();
}

void World::end(Process& process, ExitStatus status) {
  if (!process.alive) return;
  process.alive = false;
  if (process.grandchild) return check_gone();
  if (process.plan.leaves_behind) {
    processes_.push_back(std::make_unique<Process>(Process{process.generation, process.rank, process.plan, true}));
  }
  bool counts = !status.success() && !failed_ && stopped_by_ == 0;
  if (counts && !process.ending) {
    faults_.push_back({process.rank, now_, false, status.signal == 0 ? status.code : 128 + status.signal});
  }
  failed_ = failed_ || counts;
  if (!status.success() || process.plan.fate == RankPlan::Fate::kDeserts) lose_peers(process);
  post(RankExited{process.generation, process.rank, status, process.told, now_});
  check_gone();
}

void World::check_gone() {
  if (!gone_wanted_ || alive_in(generation_) > 0) return;
  later(0s, [this, generation = generation_] { post(GenerationGone{generation, now_}); });
}

bool World::any_rank_lives() const {
  return std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
    return process->generation == generation_ && process->alive && !process->grandchild;
  });
}

int World::alive_in(Generation generation) const {
  return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [&](const auto& process) {
    return process->generation == generation && process->alive;
  }));
}

}  // namespace taas::run
