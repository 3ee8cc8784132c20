#include "run/coordinator/agent_signals.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "run/events/words.hpp"

namespace taas::run {

void AgentSignals::see(int signal) { stop_seen_ = stop_seen_ || policy_.run.stops_the_run(signal); }

bool AgentSignals::concerns_the_run(int signal) const {
  bool checkpoint = policy_.run.asks_for_checkpoint(signal);
  bool plain = signal == SIGUSR1 || signal == SIGUSR2;
  return checkpoint || (!plain && !stop_seen_);
}

bool AgentSignals::lets_leave(AgentId agent, int signal) const {
  return policy_.nodes_may_leave && !stop_seen_ && !leaving_.contains(agent) && policy_.run.stops_the_run(signal);
}

void AgentSignals::part() {
  for (const auto& [agent, signal] : std::exchange(leaving_, {})) {
    auto reason = fmt::format("{}: the run goes on without this node", signal_name(signal));
    if (agents_.contains(agent)) agents_.dismiss(agent, reason, 128 + signal);
  }
}

}  // namespace taas::run
