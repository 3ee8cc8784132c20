#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "run/coordinator/decisions.hpp"
#include "run/coordinator/nodes/data_nodes.hpp"
#include "run/coordinator/policy.hpp"

namespace taas::run {

/// Whether ranks may start, as far as --loader goes.
struct LoaderCheck {
  bool prepared = false;
  std::string failure = {};                  ///< why it never will be; empty: it may be
  std::optional<Instant> ask_again_at = {};  ///< the wait for machines has a deadline; their work has none
};

/// Holds ranks of the first generation back until data workers have prepared --loader, and tells the user how far they
/// are. Simulated CPU machines prepare it as one.
class LoaderWait {
 public:
  LoaderWait(const CoordinatorPolicy& policy, const DataNodes& machines, Decisions& decisions)
      : policy_(policy), machines_(machines), decisions_(decisions) {}

  /// The user was told that ranks wait for it.
  [[nodiscard]] bool announced() const { return told_at_.has_value(); }
  /// A CPU machine is there. The patience for the others begins with the first one where all come from a queue.
  void machine_came() { first_machine_at_ = first_machine_at_.value_or(decisions_.now()); }
  /// Asked whenever all else is ready for ranks to start, or for their nodes to be released.
  LoaderCheck check(Instant gathering_since);
  /// A worker has got so far. `waiting`: ranks have not started.
  void on(const DataPrepared& message, bool waiting);
  void prepared(AgentId agent) { prepared_.insert(agent); }
  void forget(AgentId agent) { prepared_.erase(agent); }
  /// Workers that prepare a loader share it out among all of them, so they start when it is known how many there are.
  [[nodiscard]] bool workers_are_known() const { return policy_.loader.empty() || machines_.settled(); }
  /// Why nobody is left that could prepare it; empty: somebody is, or there is no loader.
  [[nodiscard]] std::string hopeless() const;

 private:
  [[nodiscard]] bool simulated() const { return policy_.data.nodes == 0; }
  [[nodiscard]] bool complete() const;
  [[nodiscard]] std::string sum() const;
  [[nodiscard]] std::optional<Instant> give_up_at(Instant gathering_since) const;

  const CoordinatorPolicy& policy_;
  const DataNodes& machines_;
  Decisions& decisions_;
  std::set<AgentId> prepared_;             // agents whose workers have prepared it
  std::map<int, DataPrepared> of_worker_;  // what they have told last
  std::optional<Instant> first_machine_at_;
  std::optional<Instant> told_at_;  // when the user read of it last
};

}  // namespace taas::run
