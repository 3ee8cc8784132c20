#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/events/deadlines.hpp"
#include "run/events/generation.hpp"
#include "run/supervisor/supervisor.hpp"

namespace taas::run {

inline constexpr auto kKillInterval = std::chrono::seconds(1);
inline constexpr auto kSettleNoticeInterval = std::chrono::seconds(30);

/// The Supervisor's inside. What concerns ranks is in supervisor_ranks.cpp, signals and timers are in
/// supervisor_stop.cpp, what comes between generations and at the end in supervisor_end.cpp.
struct Supervisor::State {
  enum class Phase {
    kIdle,
    kGathering,  ///< nodes of the next generation are looked for
    kRunning,    ///< ranks are being started or live
    kStopping,   ///< ranks were told to end
    kSweeping,   ///< all ranks have ended; what they left behind has not
    kSettling,   ///< output is being put on disk
    kFinished,
  };

  explicit State(Policy given) : policy(std::move(given)), record(Generation{0}, policy.world_size) {}

  // One overload an event.
  void on(const RunStarted&);
  void on(const NodesGathered&);
  void on(const GatherFailed&);
  void on(const RankSpawned&);
  void on(const RankSpawnFailed&);
  void on(const StoreReached&);
  void on(const RankJoined&);
  void on(const RankExited&);
  void on(const NodeLost&);
  void on(const NodeLeaves&);
  void on(const GenerationGone&);
  void on(const SignalReceived&);
  void on(const DeadlineReached&);
  void on(const OutputSettled&);

  void on_stop_signal(int signal);
  [[nodiscard]] bool ends_the_run(int signal) const;
  [[nodiscard]] bool ranks_got_it_first(int signal) const;
  void take_over(int signal);
  bool is_echo(int signal);
  void pass_on(int signal);
  void request_stop(int signal);
  void on_timer(Timer timer);

  // Into another phase.
  void gather(Generation generation);
  void start();
  void stop(int signal);
  void check_ranks();
  void sweep();
  void conclude();
  void settle();
  void finish();

  void kill();
  void await_death();
  void tell_who_has_not_joined();
  void tell_what_does_not_die(std::string_view then);
  [[nodiscard]] Verdict judge() const;
  [[nodiscard]] bool failed_at_start() const;
  [[nodiscard]] bool costs_a_restart() const;
  [[nodiscard]] bool restarts() const;
  void explain_no_restart();
  [[nodiscard]] std::string names(const std::vector<Rank>& ranks) const;

  void emit(Action action) { actions.push_back(std::move(action)); }
  void notify(std::string text) { emit(Notify{std::move(text)}); }
  void announce_deadline();

  Policy policy;  // its world is the one of the generation at hand
  Phase phase = Phase::kIdle;
  GenerationRecord record;  // of the generation at hand; while gathering, of the one that is to come
  Instant started_at{};
  std::optional<NodeLeaves> departure;  // for which the generation at hand was stopped
  int restarts_used = 0;
  int user_signal = 0;  // stopped the run, unless something had failed before
  int last_stop_signal = 0;
  Instant last_stop_at{};
  bool checkpoint_requested = false;  // a batch system will end the run soon
  bool hurried = false;               // by a signal of the user: no restart
  bool unkillable = false;            // processes are left: no restart
  Verdict verdict;
  Deadlines deadlines;
  std::optional<Instant> announced;  // the deadline that the agent knows of
  Instant now{};
  std::vector<Action> actions;  // of the event at hand
};

}  // namespace taas::run
