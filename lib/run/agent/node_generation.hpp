#pragma once

#include <optional>

#include "run/agent/agent_events.hpp"

namespace taas::run {

/// The generation that lives on this node, of which there is at most one, and a newer one that waits for its end. Pure.
class NodeGeneration {
 public:
  [[nodiscard]] bool lives() const { return living_.has_value(); }
  [[nodiscard]] bool lives(Generation generation) const { return living_ == generation; }
  /// Ranks will come that are not there yet.
  [[nodiscard]] bool is_starting() const { return (lives() && unborn_ > 0) || next_.has_value(); }

  /// What has to be done first to start these ranks: start them, or kill those that live; nothing if they are not
  /// newer than what was started before.
  std::optional<CoordinatorMessage> start(const StartRanks& order, Instant now);
  /// The generation that lives has to die; it is killed again until it has.
  KillGeneration kill(Instant now);
  bool take_due_kill(Instant now) { return take_due(kill_at_, now) && lives(); }
  [[nodiscard]] std::optional<Instant> next_kill() const { return kill_at_; }
  /// One more of its ranks runs.
  void spawned(Generation generation) { unborn_ -= lives(generation) ? 1 : 0; }
  /// The others of its ranks will not.
  void spawns_no_more(Generation generation) { unborn_ = lives(generation) ? 0 : unborn_; }
  /// Nothing of it lives. Returns false if it was not the one that did.
  bool end(Generation generation);

  /// The one that was to live next will not.
  void forget_next() { next_.reset(); }
  void forget_next(Generation generation);
  /// The one that was to live next does from now on.
  std::optional<StartRanks> begin_next();

 private:
  void begin(const StartRanks& order);

  std::optional<Generation> living_;  // has been started, and is not known to be gone
  int unborn_ = 0;                    // of its ranks
  Generation latest_{-1};             // that was ever started here
  std::optional<StartRanks> next_;    // when the living one is gone
  std::optional<Instant> kill_at_;
};

}  // namespace taas::run
