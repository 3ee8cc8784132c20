#pragma once

#include <optional>

#include "random.hpp"
#include "run/events/events.hpp"

namespace taas::run {

/// What one simulated rank will do if it is let live, and how it takes being told to stop.
struct RankPlan {
  enum class Fate { kSucceeds, kDeserts, kExits, kDies, kRaises, kNeverEnds, kCannotStart };
  enum class OnStop { kDies, kEndsWell, kEndsBadly, kIgnores };

  Fate fate = Fate::kSucceeds;
  Duration acts_after{};     ///< since its start: succeeds, exits, dies or raises
  Duration cleans_up_for{};  ///< between raising and exiting
  int code = 0;              ///< or errno, when it cannot start
  int signal = 0;

  OnStop on_stop = OnStop::kDies;
  Duration stops_after{};
  Duration survives_kill_for{};  ///< uninterruptible sleep
  std::optional<Duration> notices_lost_peer_after;
  std::optional<Duration> joins_after;
  std::optional<RankPlan::OnStop> leaves_behind;  ///< a grandchild in its own session, which takes SIGTERM like this

  [[nodiscard]] bool fails() const {
    return fate == Fate::kExits || fate == Fate::kDies || fate == Fate::kRaises || fate == Fate::kCannotStart;
  }
};

/// Draws what a rank will do; `trouble` is the chance, in percent, that it fails.
RankPlan draw_plan(Random& random, int trouble);

/// Last words of a rank that raised by itself, and of one that lost a peer.
Evidence words_of_raise(Instant at);
Evidence words_of_lost_peer(Instant at);

}  // namespace taas::run
