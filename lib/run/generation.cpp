#include "run/generation.hpp"

#include <algorithm>
#include <csignal>

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
  record->phase = Phase::kLiving;
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
    if (other.phase == Phase::kPending) other.phase = Phase::kAbsent;
  }
  return true;
}

bool GenerationRecord::joined(const RankJoined& event) {
  auto* record = find(event.generation, event.rank);
  if (record == nullptr || record->joined) return false;
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

void GenerationRecord::gone(Instant at) {
  for (auto& record : ranks_) {
    if (record.phase == Phase::kPending) record.phase = Phase::kAbsent;
    if (record.phase != Phase::kLiving) continue;
    record.status.signal = SIGKILL;
    end(record, at);
  }
}

void GenerationRecord::end(RankRecord& record, Instant at) const {
  record.phase = Phase::kEnded;
  record.ended_at = at;
  record.ended_after_stop = stopped_at_.has_value();
  record.ended_after_kill = killed_;
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

bool GenerationRecord::over() const {
  return std::none_of(ranks_.begin(), ranks_.end(), [](const RankRecord& record) {
    return record.phase == Phase::kPending || record.phase == Phase::kLiving;
  });
}

bool GenerationRecord::any_failed() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const RankRecord& record) { return record.failed(); });
}

std::vector<Rank> GenerationRecord::not_joined() const {
  std::vector<Rank> missing;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].joined) missing.push_back(Rank{static_cast<int>(i)});
  }
  return missing;
}

}  // namespace taas::run
