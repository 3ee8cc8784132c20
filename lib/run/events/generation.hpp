#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/events/events.hpp"

namespace taas::run {

/// What is known about one rank of a generation.
struct RankRecord {
  enum class Phase {
    kPending,  ///< to be started; the agent has not reported it yet
    kLiving,
    kEnded,   ///< its process has ended, or could not be made
    kAbsent,  ///< will not be started: an earlier one could not be
  };
  Phase phase = Phase::kPending;
  bool joined = false;
  bool preloaded = false;  ///< as RankSpawned
  int pid = 0;             ///< on its machine; 0: it was not started
  ExitStatus status;
  Evidence evidence;
  Instant ended_at{};
  bool ended_after_stop = false;  ///< after the launcher began to stop the generation
  bool ended_after_kill = false;  ///< after the launcher killed it
  bool lost = false;              ///< with its node
  bool spawn_failed = false;
  int spawn_errno = 0;
  std::string spawn_message;
  std::optional<RankLingers> lingering;  ///< before it ended
  bool overdue = false;                  ///< it had raised, and lived for too long afterwards

  [[nodiscard]] bool ended() const { return phase == Phase::kEnded; }
  [[nodiscard]] bool succeeded() const { return ended() && !spawn_failed && !lost && !overdue && status.success(); }
  [[nodiscard]] bool failed() const { return ended() && !succeeded(); }
  /// An exception had ended its main program while its process lived.
  [[nodiscard]] bool raised() const { return lingering && lingering->state == Lingering::kFailed; }
  /// Only if it is lingering.
  [[nodiscard]] Instant raised_at() const {
    auto told = lingering->evidence.first_error_at;
    return told == Instant{} ? lingering->at : told;
  }
};

/// The bookkeeping of one generation: which ranks live, which have ended and how, and when they were told to stop.
/// Events that are late, doubled or about ranks that do not exist change nothing; the functions that take events say so
/// by returning false. Whether a rank ended before the launcher began to stop is decided by when that happened, not by
/// when it became known. What is asked on each event takes no longer in a larger world.
class GenerationRecord {
 public:
  GenerationRecord(Generation generation, int world_size)
      : generation_(generation),
        ranks_(static_cast<std::size_t>(world_size)),
        not_over_(world_size),
        not_joined_(world_size) {}

  bool spawned(const RankSpawned& event);
  bool spawn_failed(const RankSpawnFailed& event);
  bool store_reached(const StoreReached& event);
  bool joined(const RankJoined& event);
  bool exited(const RankExited& event);
  bool lingers(const RankLingers& event);
  /// A rank that lingers counts as failed from now on, although it lives.
  void overdue(Rank rank);
  /// Nothing is left: ranks whose end was not reported have ended too.
  void gone(Instant at);

  /// A node went away: its ranks end with it, whatever becomes of their processes. One on which all had ended before is
  /// no loss.
  void lost(const NodeLost& event, const std::vector<NodeIndex>& node_of_rank);

  void stop(int signal, Instant at);
  void kill(Instant at);

  [[nodiscard]] Generation generation() const { return generation_; }
  [[nodiscard]] const std::vector<RankRecord>& ranks() const { return ranks_; }
  [[nodiscard]] const RankRecord& rank(Rank rank) const { return ranks_[static_cast<std::size_t>(rank.value)]; }
  [[nodiscard]] std::vector<Rank> in(RankRecord::Phase phase) const;
  [[nodiscard]] std::vector<Rank> living() const { return in(RankRecord::Phase::kLiving); }
  [[nodiscard]] std::size_t not_over_count() const { return static_cast<std::size_t>(not_over_); }
  /// No rank lives, and none will.
  [[nodiscard]] bool over() const { return not_over_ == 0; }
  [[nodiscard]] bool any_failed() const { return failed_ > 0; }
  /// Some rank has talked to the store.
  [[nodiscard]] bool store_reached() const { return store_reached_; }
  [[nodiscard]] std::vector<Rank> not_joined() const;
  [[nodiscard]] std::size_t not_joined_count() const { return static_cast<std::size_t>(not_joined_); }
  [[nodiscard]] const std::vector<NodeLost>& lost_nodes() const { return lost_nodes_; }
  /// The signal that ranks were first told to stop with; 0: they were not.
  [[nodiscard]] int stop_signal() const { return stop_signal_; }
  [[nodiscard]] std::optional<Instant> stopped_at() const { return stopped_at_; }
  [[nodiscard]] bool killed() const { return killed_; }

 private:
  RankRecord* find(Generation generation, Rank rank);
  void enter(RankRecord& record, RankRecord::Phase phase);
  void end(RankRecord& record, Instant at);

  Generation generation_;
  std::vector<RankRecord> ranks_;
  int not_over_;  // ranks that live or will
  int not_joined_;
  bool store_reached_ = false;
  int failed_ = 0;
  std::vector<NodeLost> lost_nodes_;
  int stop_signal_ = 0;
  std::optional<Instant> stopped_at_;
  bool killed_ = false;
};

}  // namespace taas::run
