#pragma once

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.hpp"

namespace taas::run {

/// What the supervisor waits for no longer than a certain time.
enum class Timer {
  kJoinNotice,    ///< ranks have not joined: say which
  kExit,          ///< a rank that has raised has not ended: it counts as failed
  kTimeouts,      ///< other ranks have had the time to time out as well
  kStragglers,    ///< ranks live long after the others ended well: say which
  kShutdown,      ///< ranks did not heed the signal to stop
  kLeftover,      ///< processes that ranks left behind did not heed theirs
  kKillAgain,     ///< what was killed is not gone yet
  kKillNotice,    ///< ... and that is worth a word
  kGiveUp,        ///< ... and will not be
  kRestart,       ///< the next generation may begin
  kSettleNotice,  ///< output is still not on disk: say so
};

/// Several deadlines of which the agent's one timer only has to know the earliest.
class Deadlines {
 public:
  void set(Timer timer, Instant at) { due_[timer] = at; }
  void cancel(Timer timer) { due_.erase(timer); }
  void clear() { due_.clear(); }
  /// To this instant, if it is set and earlier.
  void postpone(Timer timer, Instant at) {
    auto found = due_.find(timer);
    if (found != due_.end()) found->second = std::max(found->second, at);
  }
  /// All by so much.
  void postpone(Duration by) {
    for (auto& [timer, at] : due_) at += by;
  }
  [[nodiscard]] std::optional<Instant> earliest() const;
  [[nodiscard]] std::optional<Instant> due(Timer timer) const;
  /// Removes and returns the earliest that has come.
  std::optional<Timer> take_due(Instant now);

 private:
  std::map<Timer, Instant> due_;
};

}  // namespace taas::run
