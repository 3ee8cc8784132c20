#include "run/coordinator/coordinator.hpp"

#include <algorithm>
#include <utility>

#include "run/coordinator/coordinator_state.hpp"

namespace taas::run {
namespace {

template <class Happened>
Instant instant_of(const Happened& event) {
  return event.at;
}

Policy run_policy(const CoordinatorPolicy& policy) {
  Policy run = policy.run;
  run.startup_window = std::chrono::duration_cast<std::chrono::milliseconds>(policy.startup_window);
  return run;
}

MembershipPolicy membership_policy(const CoordinatorPolicy& policy) {
  return {policy.ranks_on_node,  policy.min_nodes,    policy.expected_agents, policy.host_names,
          policy.gather_timeout, policy.elastic_wait, policy.answer_patience};
}

}  // namespace

Coordinator::Coordinator(CoordinatorPolicy policy) : state_(std::make_unique<State>(std::move(policy))) {}
Coordinator::~Coordinator() = default;

Coordinator::State::State(CoordinatorPolicy given)
    : policy(std::move(given)),
      supervisor(run_policy(policy)),
      membership(membership_policy(policy)),
      data(policy.data) {}

std::vector<CoordinatorAction> Coordinator::handle(const CoordinatorEvent& event) {
  State& state = *state_;
  state.actions.clear();
  if (state.finished) return {};
  state.now = std::max(state.now, std::visit([](const auto& happened) { return instant_of(happened); }, event));
  std::visit([&state](const auto& happened) { state.on(happened); }, event);
  if (!state.finished) state.announce_deadline();
  return std::exchange(state.actions, {});
}

void Coordinator::State::on(const Event& event) {
  if (std::holds_alternative<DeadlineReached>(event)) return on_deadline();
  if (const auto* signal = std::get_if<SignalReceived>(&event)) {
    const auto& stops = policy.run.stop_signals;
    stop_seen = stop_seen || std::find(stops.begin(), stops.end(), signal->signal) != stops.end();
  }
  supervise(event);
}

void Coordinator::State::supervise(Event event) {
  pending.push_back(std::move(event));
  supervise_pending();
}

void Coordinator::State::supervise_pending() {
  if (supervising) return;
  supervising = true;
  while (!pending.empty() && !finished) {
    Event next = std::move(pending.front());
    pending.pop_front();
    auto decided = supervisor.handle(next);
    emit(Happened{std::move(next)});
    for (const auto& action : decided) std::visit([this](const auto& chosen) { carry_out(chosen); }, action);
  }
  supervising = false;
}

/// The timer has run out, perhaps a little early: what is not due yet is announced again.
void Coordinator::State::on_deadline() {
  announced.reset();
  if (supervisor_deadline && *supervisor_deadline <= now) {
    supervisor_deadline.reset();
    supervise(DeadlineReached{now});
  }
  if (check_agents_at && *check_agents_at <= now) lose_the_silent();
  reach.expire(now);
  if (gathering) try_gather();
  start_lost_hosts();
  check_gone();
}

void Coordinator::State::announce_deadline() {
  auto next = supervisor_deadline;
  auto consider = [&](std::optional<Instant> at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(check_agents_at);
  if (gathering) consider(gather_at);
  if (gathering) consider(gather_notice_at);
  if (gathering) consider(reach.next_expiry());
  if (!settling) consider(membership.next_start());
  if (!settling) consider(data.next_start());
  consider(check_gone_at);
  if (next == announced) return;
  announced = next;
  next ? emit(Action(SetDeadline{*next})) : emit(Action(ClearDeadline{}));
}

/// Everybody is told before the run is over.
void Coordinator::State::carry_out(const Finish& decided) {
  bool told = policy.tells_verdict && decided.verdict.exit_code != 0;
  Dismissed farewell{told ? decided.verdict.summary : "", decided.verdict.exit_code};
  for (const auto& [agent, known] : agents) emit(Tell{agent, farewell});
  if (announced) emit(Action(ClearDeadline{}));
  finished = true;
  emit(Action(decided));
}

void Coordinator::State::tell(AgentId agent, const CoordinatorMessage& message) {
  if (agents.contains(agent)) emit(Tell{agent, message});
}

}  // namespace taas::run
