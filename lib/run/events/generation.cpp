#include "run/events/generation.hpp"

#include <csignal>
#include <utility>

namespace taas::run {

using Phase = RankRecord::Phase;

RankRecord* GenerationRecord::find(Generation generation, Rank rank) {
  bool known = generation == generation_ && rank.value >= 0 && rank.value < static_cast<int>(ranks_.size());
  return known ? &ranks_[static_cast<std::size_t>(rank.value)] : nullptr;
}

/// An absent rank that was started all the same lives: it has to be stopped like any other.
bool GenerationRecord::spawned(const RankSpawned& event) {
  auto* record = find(event.generation, event.rank);
  if (record == nullptr || record->ended() || record->phase == Phase::kLiving) return false;
  record->pid = event.pid;
  record->preloaded = event.preloaded;
  enter(*record, Phase::kLiving);
  return true;
}

bool GenerationRecord::spawn_failed(const RankSpawnFailed& event) {
  auto* record = find(event.generation, event.rank);
  if (record == nullptr || record->ended() || record->phase == Phase::kLiving) return false;
  record->spawn_failed = true;
  record->spawn_errno = event.system_errno;
  record->spawn_message = event.message;
  end(*record, event.at);
  for (auto& other : ranks_) {
    if (other.phase == Phase::kPending) enter(other, Phase::kAbsent);
  }
  return true;
}

bool GenerationRecord::store_reached(const StoreReached& event) {
  if (event.generation != generation_ || store_reached_) return false;
  return store_reached_ = true;
}

bool GenerationRecord::joined(const RankJoined& event) {
  auto* record = find(event.generation, event.rank);
  if (record == nullptr || record->joined) return false;
  --not_joined_;
  return record->joined = true;
}

/// The exit of a rank whose start was not reported counts: a process that has ended has been started.
bool GenerationRecord::exited(const RankExited& event) {
  auto* record = find(event.generation, event.rank);
  if (record == nullptr || record->ended()) return false;
  record->status = event.status;
  record->evidence = event.evidence;
  end(*record, event.at);
  return true;
}

bool GenerationRecord::lingers(const RankLingers& event) {
  auto* record = find(event.generation, event.rank);
  if (record == nullptr || record->ended()) return false;
  bool known = record->lingering && record->lingering->state == event.state;
  bool nothing = !record->lingering && event.state == Lingering::kGoesOn;
  if (known || nothing) return false;
  record->lingering.reset();
  if (event.state != Lingering::kGoesOn) record->lingering = event;
  return true;
}

void GenerationRecord::overdue(Rank rank) {
  auto& record = ranks_[static_cast<std::size_t>(rank.value)];
  if (!std::exchange(record.overdue, true)) ++failed_;
}

void GenerationRecord::gone(Instant at) {
  for (auto& record : ranks_) {
    if (record.phase == Phase::kPending) enter(record, Phase::kAbsent);
    if (record.phase != Phase::kLiving) continue;
    record.status.signal = SIGKILL;
    end(record, at);
  }
}

void GenerationRecord::lost(const NodeLost& event, const std::vector<NodeIndex>& node_of_rank) {
  bool any = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    bool there = i < node_of_rank.size() && node_of_rank[i] == event.node;
    if (!there || ranks_[i].ended()) continue;
    any = ranks_[i].lost = true;
    end(ranks_[i], event.last_sign_of_life);
  }
  if (any) lost_nodes_.push_back(event);
}

void GenerationRecord::enter(RankRecord& record, Phase phase) {
  auto counts = [](Phase which) { return which == Phase::kPending || which == Phase::kLiving ? 1 : 0; };
  not_over_ += counts(phase) - counts(record.phase);
  record.phase = phase;
}

/// What died of the signal that it was to be stopped with was stopped, even if clocks say otherwise. What has ended
/// well by itself had not raised, whatever it looked like.
void GenerationRecord::end(RankRecord& record, Instant at) {
  enter(record, Phase::kEnded);
  record.ended_at = at;
  bool heeded = record.status.signal != 0 && record.status.signal == stop_signal_;
  record.ended_after_stop = stopped_at_ && (at >= *stopped_at_ || heeded);
  record.ended_after_kill = killed_;
  if (record.failed()) ++failed_;
  if (record.succeeded() && !record.ended_after_stop) record.lingering.reset();
}

void GenerationRecord::stop(int signal, Instant at) {
  if (stopped_at_) return;
  stop_signal_ = signal;
  stopped_at_ = at;
}

void GenerationRecord::kill(Instant at) {
  stop(SIGKILL, at);
  killed_ = true;
}

std::vector<Rank> GenerationRecord::in(Phase phase) const {
  std::vector<Rank> found;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i].phase == phase) found.push_back(Rank{static_cast<int>(i)});
  }
  return found;
}

std::vector<Rank> GenerationRecord::not_joined() const {
  std::vector<Rank> missing;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].joined) missing.push_back(Rank{static_cast<int>(i)});
  }
  return missing;
}

}  // namespace taas::run
