#include "run/agent/agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/agent/agent_state.hpp"

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr auto kAgentKillInterval = 1s;
constexpr Duration kFirstConnectPause = 100ms;
constexpr Duration kLongestConnectPause = 2s;
/// Nodes are started one after the other: the first seconds without an answer mean nothing.
constexpr Duration kFirstNotice = 3s;
constexpr Duration kNextNotice = 30s;

Instant instant_of(const AgentEvent& event) {
  return std::visit([](const auto& happened) { return happened.at; }, event);
}

bool due(std::optional<Instant>& timer, Instant now) {
  if (!timer || *timer > now) return false;
  timer.reset();
  return true;
}

std::string with_way_out(std::string reason) {
  if (reason.ends_with("wrong secret")) return reason + " (TAAS_TOKEN or --token-file is not the same)";
  if (reason.ends_with("another run listens there")) return reason + " (--rdzv-id is not the same)";
  return reason;
}

bool asks_to_end(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

}  // namespace

Agent::Agent(AgentPolicy policy, Hello hello) : state_(std::make_unique<State>(policy, std::move(hello))) {}
Agent::~Agent() = default;

/// The fence comes before everything else: after a machine was frozen, what waits in its sockets is not to be obeyed.
std::vector<AgentAction> Agent::handle(const AgentEvent& event) {
  State& state = *state_;
  state.actions.clear();
  if (state.phase == State::Phase::kLeft) return {};
  state.now = std::max(state.now, instant_of(event));
  if (const auto* said = std::get_if<CoordinatorSaid>(&event)) {
    if (const auto* echo = std::get_if<HeartbeatEcho>(&said->message))
      state.answered = std::max(state.answered, echo->sent);
  }
  if (!std::holds_alternative<LinkUp>(event)) state.check_fence();
  std::visit([&state](const auto& happened) { state.on(happened); }, event);
  state.announce_deadline();
  return std::exchange(state.actions, {});
}

void Agent::State::announce_deadline() {
  std::optional<Instant> next;
  auto fence_at = answered + policy.fence_after;
  bool guarded = phase == Phase::kConnected && !policy.in_process;
  for (const auto& timer :
       {beat_at, connect_at, give_up_at, kill_at, notice_at, guarded ? std::optional(fence_at) : std::nullopt}) {
    if (timer && (!next || *timer < *next)) next = timer;
  }
  if (phase == Phase::kLeft) next.reset();
  if (next == announced) return;
  announced = next;
  next ? actions.emplace_back(SetDeadline{*next}) : actions.emplace_back(ClearDeadline{});
}

void Agent::State::on(const LinkUp& /*event*/) {
  if (phase != Phase::kConnecting) return;
  phase = Phase::kConnected;
  ever_connected = true;
  attempts = 0;
  answered = now;  // the coordinator cannot have heard of this link before
  connect_at.reset();
  give_up_at.reset();
  notice_at.reset();
  send(hello);
  if (!policy.in_process) beat();
}

void Agent::State::beat() {
  send(Heartbeat{++beats, now});
  beat_at = now + policy.heartbeat_interval;
}

void Agent::State::on(const LinkDown& event) {
  if (phase == Phase::kConnected) return fence();
  if (phase != Phase::kConnecting) return;
  if (event.refused && (ever_connected || policy.coordinator_first)) {
    return leave(1, fmt::format("the coordinator is gone: {}", event.reason));
  }
  unreachable = with_way_out(event.reason);
  if (!policy.coordinator_first && !notice_at) notice_at = now + kFirstNotice;
  if (!give_up_at) give_up_at = now + (ever_connected ? policy.rejoin_for : policy.connect_for);
  auto pause = kFirstConnectPause * (1 << std::min(attempts++, 8));
  connect_at = now + std::min(pause, kLongestConnectPause);
}

void Agent::State::check_fence() {
  if (phase != Phase::kConnected || policy.in_process) return;
  if (now - answered >= policy.fence_after) fence();
}

/// The coordinator is lost, or has given this node up, or will: its ranks must be dead before it starts others.
void Agent::State::fence() {
  pending.reset();
  beat_at.reset();
  phase = Phase::kFencing;
  living ? kill() : connect();
}

void Agent::State::kill() {
  perform(KillGeneration{*living});
  kill_at = now + kAgentKillInterval;
}

void Agent::State::connect() {
  phase = Phase::kConnecting;
  attempts = 0;
  give_up_at = now + policy.rejoin_for;
  actions.emplace_back(Connect{});
}

/// At once, or when the ranks are gone.
void Agent::State::leave(int exit_code, std::string reason) {
  parting = {exit_code, std::move(reason)};
  pending.reset();
  beat_at = connect_at = give_up_at = notice_at = std::nullopt;
  phase = living ? Phase::kLeaving : Phase::kLeft;
  if (living) return kill();
  actions.emplace_back(parting);
}

/// The coordinator decides; a second wish, or one that it cannot hear, ends this node's part.
void Agent::State::on(const AgentSignalled& event) {
  bool echo = policy.echo.repeats(event.signal, last_signal, now - last_signal_at);
  if (echo || phase == Phase::kLeaving) return;
  bool again = std::exchange(last_signal, asks_to_end(event.signal) ? event.signal : last_signal) != 0;
  last_signal_at = now;
  bool reachable = phase == Phase::kConnected;
  if (reachable && !policy.in_process) send(Signalled{event.signal});
  if (asks_to_end(event.signal) && (again || !reachable)) leave(128 + event.signal, "");
}

void Agent::State::on(const DeadlineReached& /*event*/) {
  announced.reset();  // the timer has run out
  if (due(kill_at, now) && living) kill();
  if (due(beat_at, now)) beat();
  if (due(connect_at, now)) actions.emplace_back(Connect{});
  if (due(notice_at, now)) tell_why_nobody_answers();
  if (!due(give_up_at, now)) return;
  auto patience = ever_connected ? policy.rejoin_for : policy.connect_for;
  leave(1, fmt::format("the coordinator could not be reached for {:g} s{}{}", seconds(patience),
                       unreachable.empty() ? "" : ": ", unreachable));
}

/// One line a reason: who waits sees what the coordinator's machine answers, and can mend it before the time is up.
void Agent::State::tell_why_nobody_answers() {
  notice_at = now + kNextNotice;
  auto left = give_up_at ? seconds(*give_up_at - now) : 0;
  if (phase != Phase::kConnecting || unreachable == told || left <= 0) return;
  told = unreachable;
  actions.emplace_back(TellHere{fmt::format("still looking for the coordinator, for {:.0f} s more: {}", left, told)});
}

void Agent::State::on(const NodeSaid& event) {
  if (const auto* gone = std::get_if<GenerationGone>(&event.message)) return ended(gone->generation, event.message);
  tell(event.message);
}

/// What an agent has to tell when nobody listens is of no use later: it comes back as a newcomer.
void Agent::State::tell(const AgentMessage& message) {
  if (phase != Phase::kConnected) return;
  auto converted = on_coordinators_clock(message, clock);
  if (auto* reached = std::get_if<AddressesReached>(&converted)) reached->probe = probe;
  send(std::move(converted));
}

void Agent::State::ended(Generation generation, const AgentMessage& message) {
  if (living != generation) return;
  living.reset();
  kill_at.reset();
  tell(message);
  if (phase == Phase::kFencing) return connect();
  if (phase == Phase::kLeaving) return leave(parting.exit_code, parting.reason);
  if (pending) begin(*std::exchange(pending, std::nullopt));
}

}  // namespace taas::run
