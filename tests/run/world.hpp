#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rank_plan.hpp"
#include "run/supervisor/supervisor.hpp"

namespace taas::run {

/// How a simulated run went.
struct Outcome {
  std::vector<std::string> violations;  ///< invariants that did not hold
  Verdict verdict;
  bool finished = false;
  int generations = 0;
  Duration length{};
};

/// A simulated machine in virtual time: it carries out what a Supervisor decides, with ranks, grandchildren, signals
/// and doubled or foreign events drawn from a seed, and checks at every step that the decisions are sound.
class World {
 public:
  explicit World(std::uint64_t seed);
  /// Called with a journal line for every event and action.
  std::function<void(const std::string&)> on_line;
  Outcome run();

 private:
  struct Process {
    Generation generation;
    Rank rank;
    RankPlan plan;
    bool grandchild = false;
    bool alive = true;
    Evidence told = {};   // what it has said of an error so far
    bool ending = false;  // it has raised or lost a peer, and cleans up
  };
  /// Something that happened to a rank and explains the end of its generation.
  struct Fault {
    Rank rank;
    Instant cause;
    bool lost_peer;
    int exit_code;
  };

  static constexpr Instant kStart{std::chrono::seconds(1000)};

  void later(Duration delay, std::function<void()> what);
  void post(Event event);
  void feed(const Event& event);
  void set_the_scene();
  void annoy();

  // The agent's side: one overload an action.
  void act(const GatherNodes& action);
  void act(const RequestStop&) {}
  void act(const StartGeneration& action);
  void act(const SignalRanks& action);
  void act(const KillGeneration& action);
  void act(const SweepGeneration& action);
  void act(const SetDeadline& action);
  void act(const ClearDeadline&);
  void act(const SettleOutput&);
  void act(const Notify&);
  void act(const ReportFailure& action);
  void act(const Finish& action);

  // The processes' side.
  void spawn(Generation generation, Rank rank, const RankPlan& plan);
  void live(Process& process);
  void deliver(Process& process, int signal);
  void sweep(Generation generation, int signal);
  void raise(Process& process);
  void lose_peers(const Process& gone);
  void end(Process& process, ExitStatus status);
  void check_gone();

  void require(bool holds, const std::string& what);
  void check_reaction(const Event& event, const std::vector<Action>& decided);
  void check_culprit(const Verdict& verdict);
  void check_end(const Verdict& verdict);
  [[nodiscard]] const Fault* first_fault() const;
  [[nodiscard]] bool stopping() const { return failed_ || stopped_by_ != 0; }
  [[nodiscard]] bool any_rank_lives() const;
  [[nodiscard]] int alive_in(Generation generation) const;

  Random random_;
  Policy policy_;
  Supervisor supervisor_;
  int trouble_ = 0;
  Instant now_;
  std::map<std::pair<Instant, std::uint64_t>, std::function<void()>> agenda_;
  std::uint64_t appointments_ = 0;
  std::uint64_t deadline_ = 0;  // which SetDeadline counts
  bool deadline_set_ = false;

  std::vector<std::unique_ptr<Process>> processes_;
  Generation generation_{-1};
  Rank newcomer_{-1};             // was started just now
  int to_spawn_ = 0;              // ranks of the generation that are still to be started
  Instant stopped_at_{};          // when something first failed or the user stopped the generation
  Instant killed_at_{};           // when SIGKILL was first asked for; zero: not yet
  bool spawning_ = false;         // until a rank cannot be started, or all are killed
  bool gone_wanted_ = false;      // a sweep or kill was asked for
  bool gave_up_allowed_ = false;  // some process survives SIGKILL for too long
  std::vector<Fault> faults_;     // of the generation, those that showed before it was stopped
  bool failed_ = false;           // a failure of the generation was told to the supervisor
  int stopped_by_ = 0;            // the signal that came first, unless a failure did
  bool settling_ = false;
  bool settled_ = false;
  bool output_lost_ = false;
  int signals_while_settling_ = 0;
  bool reported_ = false;
  Outcome outcome_;
};

}  // namespace taas::run
