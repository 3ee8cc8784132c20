#pragma once

#include <optional>
#include <vector>

#include "run/supervisor/restarts.hpp"
#include "run/supervisor/signal_wishes.hpp"
#include "run/supervisor/termination.hpp"

namespace taas::run {

/// The run's logic: before each generation it asks for nodes, and what comes with NodesGathered replaces the policy's
/// world; starts, exits, stops, restarts and the verdict. Pure: events in, actions out, no clock, no I/O.
/// One instance lives for one run. Feed every event in the order it became known and carry out the actions in order.
class Supervisor {
 public:
  explicit Supervisor(Policy policy);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  std::vector<Action> handle(const Event& event);
  /// A node does not answer: whether processes there were killed is not known before it does, or is lost.
  void give_up_later(Instant now) { deadlines_.postpone(Timer::kGiveUp, now + kGiveUpAgain); }
  /// Nothing ran for so long, which nobody's deadline is to suffer from.
  void postpone_deadlines(Duration by) { deadlines_.postpone(by); }

 private:
  static constexpr Duration kGiveUpAgain = std::chrono::seconds(5);

  enum class Phase {
    kIdle,
    kPausing,    ///< the next generation does not begin yet
    kGathering,  ///< nodes of the next generation are looked for
    kRunning,    ///< ranks are being started or live
    kStopping,   ///< ranks were told to end
    kSweeping,   ///< all ranks have ended; what they left behind has not
    kSettling,   ///< output is being put on disk
    kFinished,
  };

  // One overload an event.
  void on(const RunStarted&);
  void on(const NodesGathered&);
  void on(const GatherFailed&);
  void on(const RankSpawned&);
  void on(const RankSpawnFailed&);
  void on(const StoreReached& event) { record_.store_reached(event); }
  void on(const RankJoined&);
  void on(const RankExited&);
  void on(const RankLingers&);
  void on(const NodeLost&);
  void on(const NodeLeaves&);
  void on(const NodesSilent&) {}  // nothing is decided on these two
  void on(const NodesAnswer&) {}
  void on(const GenerationGone&);
  void on(const SignalReceived&);
  void on(const DeadlineReached&);
  void on(const OutputSettled&);
  void on_timer(Timer timer);

  // What signals ask for.
  void on_stop_signal(const SignalReceived& event);
  void on_checkpoint_signal(const SignalReceived& event);
  void pass_on(int signal);
  void stop_for_user(const SignalReceived& event);
  void stop_leftovers(int signal);
  void take_over(int signal);
  [[nodiscard]] bool ranks_got_it_first(int signal) const;

  // Into another phase.
  void pause(Duration pause);
  void gather(Generation generation);
  void start();
  void stop(int signal, bool sent = false);
  void check_ranks();
  void conclude();
  void settle();
  void finish();

  [[nodiscard]] bool ranks_may_live() const { return phase_ == Phase::kRunning || phase_ == Phase::kStopping; }
  [[nodiscard]] Verdict judge() const;
  void tell_who_has_not_joined();
  void await_exit(const RankRecord& record);
  void on_exit_timeout();
  void stop_failed(const RankRecord& ended);
  void await_stragglers();
  void tell_who_has_not_ended();
  void announce_deadline();

  Policy policy_;  // its world is the one of the generation at hand
  Phase phase_ = Phase::kIdle;
  GenerationRecord record_;  // of the generation at hand; while gathering, of the one that is to come
  Deadlines deadlines_;
  SupervisorActions actions_;
  SignalWishes wishes_{policy_};
  Restarts restarts_{policy_};
  Generation folded_{-1};  // whose log files go when the next generation starts
  Termination termination_{policy_, record_, deadlines_, actions_};
  Instant ended_well_at_{};              // the last of those that have
  std::optional<NodeLeaves> departure_;  // for which the generation at hand was stopped
  int user_signal_ = 0;                  // stopped the run, unless something had failed before
  bool hurried_ = false;                 // by a signal of the user: no restart
  Verdict verdict_;
  std::optional<Instant> announced_;  // the deadline that the agent knows of
};

}  // namespace taas::run
