#include "run/verdict/culprit.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/verdict/peer_loss.hpp"

namespace taas::run {
namespace {

/// Between raising and exiting a program cleans up. An error that is older may have been survived.
constexpr auto kCleanUp = std::chrono::seconds(10);

/// Judges one rank's failure against the others'.
class Judge {
 public:
  explicit Judge(const GenerationRecord& generation)
      : generation_(generation), early_(somebody_finished_early(generation)) {}

  [[nodiscard]] Candidate weigh(Rank rank) const {
    const auto& record = generation_.rank(rank);
    Candidate candidate{rank, Strength::kNone, record.ended_at, {}};
    if (record.lost) return candidate;  // its node is judged
    if (record.raised()) return weigh_lingering(rank, record);
    bool spoke = record.ended_after_stop && record.evidence.first_error_at != Instant{};
    if (!record.failed() && !spoke) return candidate;
    if (record.spawn_failed) {
      // After the stop it cannot be what broke the generation, not even when that was a rank that only lost a peer.
      candidate.strength = record.ended_after_stop ? Strength::kNone : Strength::kOwn;
      return candidate;
    }
    candidate.error = find_fatal_error(record.evidence);
    if (told_in_time(record, candidate.error)) candidate.cause_at = record.evidence.first_error_at;
    candidate.strength = strength(record, candidate.error);
    return candidate;
  }

 private:
  /// The main program had ended of its exception, however the process ended then.
  [[nodiscard]] Candidate weigh_lingering(Rank rank, const RankRecord& record) const {
    Candidate candidate{rank, Strength::kOwn, record.raised_at(), find_raised(*record.lingering)};
    if (candidate.error.only_lost_a_peer()) {
      candidate.strength = names_lost_peer(candidate.error.text()) ? Strength::kNamesPeer : Strength::kLostPeer;
    }
    return candidate;
  }

  [[nodiscard]] Instant end_of(const RankRecord& record) const {
    return record.ended_after_stop ? *generation_.stopped_at() : record.ended_at;
  }

  /// The rank had told its fatal error before it ended or was stopped, and said nothing else since.
  [[nodiscard]] bool told(const RankRecord& record, const FatalError& error) const {
    auto at = record.evidence.first_error_at;
    return error.kind != FatalError::Kind::kNone && at != Instant{} && at <= end_of(record);
  }

  [[nodiscard]] bool told_in_time(const RankRecord& record, const FatalError& error) const {
    return told(record, error) && end_of(record) - record.evidence.first_error_at <= kCleanUp;
  }

  [[nodiscard]] Strength strength(const RankRecord& record, const FatalError& error) const {
    bool by_us = ended_by_us(record, generation_);
    bool before = !record.ended_after_stop || told(record, error);
    if (only_lost_a_peer(record, error, by_us) && names_lost_peer(error.text())) return Strength::kNamesPeer;
    if (by_us && !before) return Strength::kNone;
    if (only_lost_a_peer(record, error, by_us)) return before ? Strength::kLostPeer : Strength::kNone;
    if (!before && early_) return Strength::kNone;
    if (!before) return record.status.signal == 0 ? Strength::kLater : Strength::kStruck;
    return !record.ended_after_stop || told_in_time(record, error) ? Strength::kOwn : Strength::kTold;
  }

  const GenerationRecord& generation_;
  bool early_;
};

/// A node that was heard of after the stop explains why others had lost a peer, if nothing better does.
Candidate weigh(const NodeLost& lost, const GenerationRecord& generation) {
  bool before = !generation.stopped_at() || lost.last_sign_of_life <= *generation.stopped_at();
  return {Rank{-1}, before ? Strength::kOwn : Strength::kLostNode, lost.last_sign_of_life, {}, &lost};
}

void consider(Candidate candidate, Candidate& culprit) {
  bool stronger = candidate.strength > culprit.strength;
  bool earlier = candidate.strength == culprit.strength && candidate.cause_at < culprit.cause_at;
  if (stronger || (earlier && candidate.strength != Strength::kNone)) culprit = std::move(candidate);
}

}  // namespace

bool ended_by_us(const RankRecord& record, const GenerationRecord& generation) {
  const auto& status = record.status;
  if (record.spawn_failed || record.raised() || !record.ended_after_stop) return false;
  if (record.ended_after_kill && status.signal == SIGKILL) return true;
  return status.success() || status.signal == generation.stop_signal() || status.code == 128 + generation.stop_signal();
}

bool only_lost_a_peer(const RankRecord& record, const FatalError& error, bool by_us) {
  int signal = record.status.signal;
  if (signal == SIGPIPE) return true;
  bool by_own_will = signal == 0 || signal == SIGABRT || by_us;
  return by_own_will && error.only_lost_a_peer();
}

bool somebody_finished_early(const GenerationRecord& generation) {
  return std::any_of(generation.ranks().begin(), generation.ranks().end(),
                     [](const RankRecord& record) { return record.succeeded() && !record.ended_after_stop; });
}

Candidate find_culprit(const GenerationRecord& generation) {
  Judge judge(generation);
  Candidate culprit{Rank{-1}, Strength::kNone, {}, {}};
  for (int rank = 0; rank < static_cast<int>(generation.ranks().size()); ++rank) {
    consider(judge.weigh(Rank{rank}), culprit);
  }
  for (const auto& lost : generation.lost_nodes()) consider(weigh(lost, generation), culprit);
  return culprit;
}

}  // namespace taas::run
