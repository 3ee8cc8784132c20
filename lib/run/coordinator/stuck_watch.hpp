#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/coordinator/members.hpp"
#include "run/coordinator/nodes/data_nodes.hpp"
#include "run/looks/look_report.hpp"
#include "run/looks/standing.hpp"

namespace taas::run {

/// Whether the generation at hand gets on: where some ranks have hardly run for a while, it has all of them looked at,
/// twice, and tells the user who waits for whom, and where. Where a time was set for it, it reports a standstill that
/// lasts so long, which ends the generation. Answers those who ask, too. Pure.
class StuckWatch {
 public:
  /// `tells_phases` as in CoordinatorPolicy.
  StuckWatch(Duration hang_timeout, bool tells_phases, Decisions& decisions, Agents& agents, Members& members,
             const DataNodes& machines)
      : hang_timeout_(hang_timeout),
        tells_phases_(tells_phases),
        decisions_(decisions),
        agents_(agents),
        members_(members),
        machines_(machines) {}

  /// All of the generation is to end: what it does from now on is no standstill.
  void end();

  /// What becomes of nodes and ranks.
  void see(const Event& event);
  void on(AgentId agent, const RankMotion& message);
  void on(AgentId agent, const RanksSeen& message);
  void on(const LookAsked& event);
  void on(const DataProgress& message);

  [[nodiscard]] std::optional<Instant> next_check() const;
  void check();

  /// Ranks have waited in vain, and may be ended in a second: what the others are at is looked at before.
  void look_before_the_end();
  /// What this rank was seen to do, not long before now; empty: nothing.
  [[nodiscard]] std::string last_seen(Rank rank) const;

 private:
  /// All ranks at one moment, as far as agents have answered.
  struct Seen {
    std::set<AgentId> unheard;
    Instant asked{};
    std::map<Rank, RankLook> seen;
    std::map<std::string, RankLook> data_workers;
  };
  enum class Reason {
    kStillness,
    kTheEnd,    ///< of the generation is near
    kSomebody,  ///< asked
    kPhase,     ///< what ranks are about is told; one look is enough
  };
  /// Two looks, some time apart, and what they are for.
  struct Pair {
    Reason reason = Reason::kStillness;
    LookAsked asked_by;        ///< if somebody did
    std::uint64_t number = 0;  ///< of the look that is under way
    Seen now;
    bool under_way = false;
    std::optional<Seen> before;
    std::optional<Instant> second_at;
  };

  void begin(const NodesGathered& event);
  [[nodiscard]] bool looks_for(Reason reason) const;
  void start(Reason reason, const LookAsked& asked_by = {});
  void ask(Pair& pair);
  void advance(Pair& pair);
  bool finish(Pair& pair);
  std::vector<RankStanding> judge_all(const Pair& pair) const;
  void remember(const std::vector<RankStanding>& standings);
  void conclude(const Pair& pair);
  void tell_phase(const Pair& pair);
  void mind_hang_timeout(const Standing& standing);
  void tell(const Standing& standing);
  void moves_again();
  void answer(const Pair& pair);
  [[nodiscard]] LookReport report(const Pair& pair) const;
  [[nodiscard]] RankReport report_of(Rank rank, const Pair& pair) const;
  void add_measures(RankReport& report, const RankLook& now, const RankLook* before) const;
  [[nodiscard]] Instant still_since() const;

  Duration hang_timeout_;  // 0: for ever
  bool tells_phases_;
  Decisions& decisions_;
  Agents& agents_;
  Members& members_;
  const DataNodes& machines_;
  Policy policy_;
  bool active_ = false;
  std::set<Rank> joined_;       // a process group
  std::map<Rank, int> living_;  // and their processes
  std::vector<Rank> ended_well_;
  std::map<Rank, Instant> still_;     // since when
  std::map<Rank, double> data_wait_;  // as in RankReport
  std::uint64_t number_ = 0;
  std::vector<Pair> pairs_;  // of looks under way
  std::optional<Instant> check_at_;
  std::optional<Instant> phase_at_;      // the next look for it
  Duration pause_{};                     // until the next look
  std::map<std::string, Instant> told_;  // when, by Standing::key
  std::optional<Instant> told_stuck_;    // since when nothing moves, where the user knows
  std::map<Rank, RankStanding> last_;    // as they were seen last
  Instant last_at_{};
};

}  // namespace taas::run
