#pragma once

#include <map>
#include <string>

#include "run/coordinator/agents.hpp"
#include "run/coordinator/policy.hpp"

namespace taas::run {

/// What it means that the system has sent a signal to this process or to an agent, and the agents that leave the run
/// because of one, as when their machine is to be shut down.
class AgentSignals {
 public:
  AgentSignals(const CoordinatorPolicy& policy, Agents& agents) : policy_(policy), agents_(agents) {}

  /// The coordinator itself was sent it.
  void see(int signal);
  /// What reaches an agent only stops the run as if it had come here; what comes here as well is no second wish.
  [[nodiscard]] bool concerns_the_run(int signal) const;
  /// This agent may leave alone, as far as signals go.
  [[nodiscard]] bool lets_leave(AgentId agent, int signal) const;

  /// So many agents ask their ranks for something by this signal, and answer.
  void ask(int signal, int agents) { asked_ = {signal, agents, 0, 0}; }
  /// With the last answer, a line if there are ranks that do not handle the signal.
  std::string count(const SignalAnswer& answer);

  /// It was told to stop, and is still there while the generation is.
  void leave(AgentId agent, int signal) { leaving_[agent] = signal; }
  /// Nothing of a generation lives on those that leave any more.
  void part();

 private:
  struct Asked {
    int signal = 0;
    int agents = 0;  ///< that have not answered
    int ranks = 0;
    int unheard = 0;
  };

  const CoordinatorPolicy& policy_;
  Agents& agents_;
  bool stop_seen_ = false;
  Asked asked_;
  std::map<AgentId, int> leaving_;  // by agent, the signal
};

}  // namespace taas::run
