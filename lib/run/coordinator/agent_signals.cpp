#include "run/coordinator/agent_signals.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "base/text.hpp"
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

std::string AgentSignals::count(const SignalAnswer& answer) {
  if (answer.signal != asked_.signal || asked_.agents == 0) return "";
  asked_.ranks += answer.ranks;
  asked_.unheard += answer.unheard;
  if (--asked_.agents > 0 || asked_.unheard == 0) return "";
  auto who = fmt::format("{} of {}", asked_.unheard, plural(asked_.ranks, "rank"));
  auto what = policy_.run.asks_for_checkpoint(answer.signal)
                  ? "the file that TAAS_STOP_REQUESTED names is all that tells them"
                  : "they were not sent it";
  return fmt::format("{}: {} {} not handle it; {}", signal_name(answer.signal), who,
                     asked_.unheard == 1 ? "does" : "do", what);
}

void AgentSignals::part() {
  for (const auto& [agent, signal] : std::exchange(leaving_, {})) {
    auto reason = fmt::format("{}: the run goes on without this node", signal_name(signal));
    if (agents_.contains(agent)) agents_.dismiss(agent, reason, 128 + signal);
  }
}

}  // namespace taas::run
