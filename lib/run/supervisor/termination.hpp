#pragma once

#include <string_view>

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"
#include "run/supervisor/deadlines.hpp"
#include "run/supervisor/supervisor_actions.hpp"

namespace taas::run {

/// How the processes of a generation are brought to their end: a signal to ranks that live, a wait for what they left
/// behind, then SIGKILL to everything that is left, again and again, with a deadline for each step.
class Termination {
 public:
  /// All of these must outlive this; `record` and the world of `policy` are those of the generation at hand.
  Termination(const Policy& policy, GenerationRecord& record, Deadlines& deadlines, SupervisorActions& actions)
      : policy_(policy), record_(record), deadlines_(deadlines), actions_(actions) {}

  /// Ranks are told to end; `sent` as in SignalRanks.
  void stop(int signal, bool sent = false);
  /// All ranks have ended. What they left behind when they were told to stop, such as the program of a shell that has
  /// ended of the signal, has what is left of the ranks' own time, and is told as they were.
  void sweep();
  /// All ranks have ended in peace: what they left behind, such as an upload, may finish what it does.
  void await_leftovers();
  /// The user does not want to wait for it.
  void stop_leftovers();
  void kill();

  void on_shutdown_timeout();
  void on_leftover_timeout();
  void on_kill_again();
  void on_kill_notice() { tell_what_does_not_die("still trying"); }
  void on_give_up();
  /// Processes are left that cannot be killed: no generation may follow.
  [[nodiscard]] bool gave_up() const { return gave_up_; }

 private:
  void end_leftovers(Duration grace);
  void await_death();
  void tell_what_does_not_die(std::string_view then);

  const Policy& policy_;
  GenerationRecord& record_;
  Deadlines& deadlines_;
  SupervisorActions& actions_;
  bool gave_up_ = false;
};

}  // namespace taas::run
