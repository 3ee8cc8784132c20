#include "run/agent/agent.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace taas::run {
namespace {

constexpr Duration kStandstill = std::chrono::seconds(1);  // a deadline that is so late has not been looked for

bool asks_to_end(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT; }

}  // namespace

Agent::Agent(AgentPolicy policy, Hello hello)
    : policy_(policy), hello_(std::move(hello)), search_(policy), heartbeats_(policy) {}

/// The fence comes before everything else: after a machine was frozen, what waits in its sockets is not to be obeyed.
std::vector<AgentAction> Agent::handle(const AgentEvent& event) {
  if (phase_ == Phase::kLeft) return {};
  now_ = std::max(now_, instant_of(event));
  if (const auto* said = std::get_if<CoordinatorSaid>(&event)) {
    if (const auto* echo = std::get_if<HeartbeatEcho>(&said->message)) heartbeats_.on(*echo, said->aside);
  }
  const bool stood_still = announced_ && now_ - *announced_ >= kStandstill && !policy_.in_process;
  if (stood_still && !generation_.is_starting()) heartbeats_.wake(*announced_, now_);
  if (!std::holds_alternative<LinkUp>(event)) check_fence();
  std::visit([this](const auto& happened) { on(happened); }, event);
  announce_deadline();
  return std::exchange(actions_, {});
}

void Agent::announce_deadline() {
  auto next = next_deadline();
  if (next == announced_) return;
  announced_ = next;
  next ? actions_.emplace_back(SetDeadline{*next}) : actions_.emplace_back(ClearDeadline{});
}

std::optional<Instant> Agent::next_deadline() const {
  if (phase_ == Phase::kLeft) return std::nullopt;
  bool guarded = phase_ == Phase::kConnected && !policy_.in_process;
  auto fence_at = guarded ? std::optional(heartbeats_.fence_at()) : std::nullopt;
  return earliest({heartbeats_.next_beat(), search_.next_deadline(), generation_.next_kill(), fence_at});
}

void Agent::on(const LinkUp& /*event*/) {
  if (phase_ != Phase::kConnecting) return;
  phase_ = Phase::kConnected;
  search_.found();
  heartbeats_.begin(now_);
  send(hello_);
  if (!policy_.in_process) beat();
}

void Agent::on(const LinkDown& event) {
  if (phase_ == Phase::kConnected) return fence();
  if (phase_ != Phase::kConnecting) return;
  if (auto why = search_.on(event, now_); !why.empty()) leave(1, std::move(why));
}

void Agent::check_fence() {
  if (phase_ != Phase::kConnected || policy_.in_process) return;
  if (now_ >= heartbeats_.fence_at()) fence();
}

void Agent::beat() {
  auto heartbeat = heartbeats_.beat(now_);
  send(heartbeat);
  if (!heartbeats_.take_ask(now_)) return;
  heartbeat.instance = hello_.instance;
  actions_.emplace_back(Ask{std::move(heartbeat)});
}

/// The coordinator is lost, or has given this node up, or will: its ranks must be dead before it starts others.
void Agent::fence() {
  generation_.forget_next();
  heartbeats_.stop();
  held_.clear();
  phase_ = Phase::kFencing;
  generation_.lives() ? kill() : connect();
}

void Agent::connect() {
  phase_ = Phase::kConnecting;
  search_.begin(now_);
  actions_.emplace_back(Connect{});
}

/// At once, or when the ranks are gone.
void Agent::leave(int exit_code, std::string reason) {
  parting_ = {exit_code, std::move(reason)};
  generation_.forget_next();
  heartbeats_.stop();
  search_.stop();
  phase_ = generation_.lives() ? Phase::kLeaving : Phase::kLeft;
  if (generation_.lives()) return kill();
  actions_.emplace_back(parting_);
}

/// The coordinator decides; a second wish, or one that it cannot hear, ends this node's part.
void Agent::on(const AgentSignalled& event) {
  bool echo = policy_.echo.repeats(event.signal, last_signal_, now_ - last_signal_at_);
  if (echo || phase_ == Phase::kLeaving) return;
  bool again = std::exchange(last_signal_, asks_to_end(event.signal) ? event.signal : last_signal_) != 0;
  last_signal_at_ = now_;
  bool reachable = phase_ == Phase::kConnected;
  if (reachable && !policy_.in_process) send(Signalled{event.signal, event.reached_ranks});
  if (asks_to_end(event.signal) && (again || !reachable)) leave(128 + event.signal, "");
}

void Agent::on(const DeadlineReached& /*event*/) {
  announced_.reset();  // the timer has run out
  if (generation_.take_due_kill(now_)) kill();
  if (heartbeats_.take_due_beat(now_)) beat();
  if (search_.take_attempt(now_)) actions_.emplace_back(Connect{});
  auto notice = search_.take_notice(now_, phase_ == Phase::kConnecting);
  if (!notice.empty()) actions_.emplace_back(TellHere{std::move(notice)});
  if (auto why = search_.take_failure(now_); !why.empty()) leave(1, std::move(why));
}

/// Only a connected agent obeys: what comes later belongs to a link that it has given up. So may what has waited while
/// this process did not run, until the coordinator has answered again.
void Agent::on(const CoordinatorSaid& event) {
  if (phase_ != Phase::kConnected) return;
  const bool always =
      std::holds_alternative<HeartbeatEcho>(event.message) || std::holds_alternative<Dismissed>(event.message);
  if (heartbeats_.is_waking() && !always) return held_.push_back(event.message);
  obey(event.message);
  if (heartbeats_.is_waking()) return;
  for (const auto& message : std::exchange(held_, {})) {
    if (phase_ == Phase::kConnected) obey(message);
  }
}

void Agent::on_message(const ProbeAddresses& message) {
  probe_ = message.probe;
  execute(message);
}

void Agent::on_message(const StartRanks& message) {
  if (auto order = generation_.start(message, now_)) execute(std::move(*order));
}

void Agent::on_message(const SignalRanks& message) {
  if (generation_.lives(message.generation)) execute(message);
}

/// A generation that does not live here, or never did, is gone.
void Agent::end(Generation generation, const CoordinatorMessage& message) {
  if (generation_.lives(generation)) return execute(message);
  generation_.forget_next(generation);
  send(on_coordinators_clock(GenerationGone{generation, now_}, clock_));
}

void Agent::on(const NodeSaid& event) {
  if (const auto* gone = std::get_if<GenerationGone>(&event.message)) return on_gone(gone->generation, event.message);
  if (const auto* spawned = std::get_if<RankSpawned>(&event.message)) generation_.spawned(spawned->generation);
  if (const auto* failed = std::get_if<RankSpawnFailed>(&event.message)) generation_.spawns_no_more(failed->generation);
  tell(event.message);
}

/// What an agent has to tell when nobody listens is of no use later: it comes back as a newcomer.
void Agent::tell(const AgentMessage& message) {
  if (phase_ != Phase::kConnected) return;
  auto converted = on_coordinators_clock(message, clock_);
  if (auto* reached = std::get_if<AddressesReached>(&converted)) reached->probe = probe_;
  send(std::move(converted));
}

void Agent::on_gone(Generation generation, const AgentMessage& message) {
  if (!generation_.end(generation)) return;
  tell(message);
  if (phase_ == Phase::kFencing) return connect();
  if (phase_ == Phase::kLeaving) return leave(parting_.exit_code, parting_.reason);
  if (auto order = generation_.begin_next()) execute(std::move(*order));
}

}  // namespace taas::run
