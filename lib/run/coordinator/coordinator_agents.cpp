#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "run/coordinator/coordinator_state.hpp"
#include "run/events/words.hpp"

namespace taas::run {
namespace {

constexpr const char* kConnectedAgain =
    "it lost its connection; where a network stalls or answers late, --node-timeout has to be larger";
constexpr auto kSilence = std::chrono::seconds(1);  // more than a few heartbeats

/// "hostb", or the address of one that did not say its name.
std::string name_of(const Hello& hello) { return hello.hostname.empty() ? "a node" : hello.hostname; }

}  // namespace

/// An agent that connects again has killed its ranks before: what the coordinator knew of it is over.
void Coordinator::State::on(const AgentArrived& event) {
  if (auto former = connection_of(event.hello.instance)) {
    emit(Drop{*former, "it has connected again"});
    lose(*former, kConnectedAgain, agents.at(*former).heard, now);
  }
  if (finished) return emit(Tell{event.agent, Dismissed{"the run is over", 1}});
  agents[event.agent] = {event.hello, 0, {}, now};
  if (auto why = unwanted(event.hello); !why.empty()) {
    bool is_data = event.hello.role == AgentRole::kData;
    bool twice = is_data || membership.holder(event.hello.order).has_value();
    if (!twice) return membership.arrive(event.agent, event.hello, now), turn_away(event.agent, std::move(why));
    if (!came_back_twice(event.hello)) notify(fmt::format("{} was sent away: {}", name_of(event.hello), why));
    dismiss(event.agent, why, kUsageError);
    if (!is_data || data.holder(event.hello.order)) return;
    data.fail(event.hello.order);
    data_changed();
    return;
  }
  if (event.hello.role == AgentRole::kData) return welcome_data(event.agent, event.hello);
  membership.arrive(event.agent, event.hello, now);
  if (!policy.in_process && !check_agents_at) check_agents_at = now + policy.lost_after;
  tell(event.agent, Welcome{policy.launch});
}

std::optional<AgentId> Coordinator::State::connection_of(const std::string& instance) const {
  auto found = std::find_if(agents.begin(), agents.end(),
                            [&](const auto& entry) { return entry.second.hello.instance == instance; });
  return instance.empty() || found == agents.end() ? std::nullopt : std::optional(found->first);
}

std::string Coordinator::State::unwanted(const Hello& hello) const {
  if (hello.protocol != kProtocolVersion || hello.version != policy.version) {
    return fmt::format("it runs taas-run {} (protocol {}), this run {} (protocol {}): install the same on all nodes",
                       hello.version, hello.protocol, policy.version, kProtocolVersion);
  }
  auto holder = hello.role == AgentRole::kData ? data.holder(hello.order) : membership.holder(hello.order);
  if (holder) {
    return fmt::format("{} is node {} already", name_of(agents.at(*holder).hello), hello.order);
  }
  return "";
}

/// A host that was lost is started again, and its former agent looks for the coordinator as well: one of both is
/// enough.
bool Coordinator::State::came_back_twice(const Hello& hello) const {
  auto holder = membership.holder(hello.order);
  return holder && fetched.contains(hello.order) && agents.at(*holder).hello.hostname == hello.hostname;
}

void Coordinator::State::dismiss(AgentId agent, const std::string& reason, int exit_code) {
  tell(agent, Dismissed{reason, exit_code});
  agents.erase(agent);
}

/// The host will not take part. When the run cannot do without, its report says why; else a line does.
void Coordinator::State::turn_away(AgentId agent, std::string why) {
  auto text = fmt::format("{} cannot take part: {}", name_of(agents.at(agent).hello), why);
  dismiss(agent, why, kUsageError);
  reach.forget(agent);
  membership.refuse(agent, text, now);
  if (!gathering || !membership.hopeless()) notify(text);
  try_gather();
}

void Coordinator::State::on(const HostFailed& event) {
  if (data.owns_order(event.order)) {
    data.fail(event.order);
    notify(event.message);
    return data_changed();
  }
  membership.fail(event.order, event.message, now);
  if (!gathering || !membership.hopeless()) notify(event.message);
  try_gather();
}

void Coordinator::State::on(const AgentSaid& event) {
  auto known = agents.find(event.agent);
  if (known == agents.end()) return;
  known->second.heard = now;
  std::visit([&](const auto& message) { hear(event.agent, message); }, event.message);
}

void Coordinator::State::hear(AgentId agent, const Heartbeat& message) {
  tell(agent, HeartbeatEcho{message.number, message.sent, now});
}

void Coordinator::State::hear(AgentId agent, const Ready& message) {
  if (data.has(agent)) return data_ready(agent, message);
  agents.at(agent).store_port = message.store_port;
  agents.at(agent).rank_ports = message.rank_ports;
  agents.at(agent).folder = message.folder;
  receive_from(agent);
  if (!data.list().workers.empty() && data_list_is_open()) tell(agent, data.list());
  membership.ready(agent);
  try_gather();
}

void Coordinator::State::hear(AgentId agent, const Refused& message) {
  data.has(agent) ? data_refused(agent, message.message) : turn_away(agent, message.message);
}

void Coordinator::State::hear(AgentId agent, const AddressesReached& message) {
  reach.answer(agent, message.probe, message.addresses);
  if (!reach.waiting()) try_gather();
}

/// What reaches an agent only, as when its machine is shut down, stops the run as if it had come here. What comes here
/// as well is not a second wish.
void Coordinator::State::hear(AgentId agent, const Signalled& message) {
  if (may_leave(agent, message.signal)) return let_go(agent, message.signal);
  const auto& preempt = policy.run.preempt_signals;
  bool checkpoint = std::find(preempt.begin(), preempt.end(), message.signal) != preempt.end();
  bool plain = message.signal == SIGUSR1 || message.signal == SIGUSR2;
  if (checkpoint || (!plain && !stop_seen)) on(Event(SignalReceived{message.signal, now}));
}

/// As when its machine is to be shut down, and the run can do without.
bool Coordinator::State::may_leave(AgentId agent, int signal) const {
  const auto& stops = policy.run.stop_signals;
  bool asked = policy.nodes_may_leave && !stop_seen && !settling && !leaving.contains(agent) && !data.has(agent);
  return asked && std::ranges::find(stops, signal) != stops.end() && membership.enough_without(agent, now);
}

void Coordinator::State::let_go(AgentId agent, int signal) {
  leaving[agent] = signal;
  membership.leave(agent);
  reach.forget(agent);
  auto member = members.find(agent);
  if (member == members.end()) {
    notify(fmt::format("{} leaves: it was told to stop by {}", name_of(agents.at(agent).hello), signal_name(signal)));
    part_with_leaving();
    return try_gather();
  }
  auto node = member->second.shares.front().node;
  supervise(NodeLeaves{generation, node, agents.at(agent).hello.hostname, signal, now});
}

/// Nothing of a generation lives there any more.
void Coordinator::State::part_with_leaving() {
  for (const auto& [agent, signal] : std::exchange(leaving, {})) {
    if (agents.contains(agent))
      dismiss(agent, fmt::format("{}: the run goes on without this node", signal_name(signal)), 128 + signal);
  }
}

/// An agent that closed its link has ended, or kills its ranks now. One that does not know of it yet kills them when
/// its patience is over. After a silence the end of the link is no sign of life.
void Coordinator::State::on(const AgentLeft& event) {
  auto known = agents.find(event.agent);
  if (known == agents.end()) return;
  auto heard = known->second.heard;
  auto silence = now - heard;
  auto gone_at = event.closed_by_agent ? now + policy.closed_grace : heard + policy.lost_after;
  bool silent = silence > kSilence;
  auto reason =
      silent ? fmt::format("no sign of life for {:.1f} s, then {}", seconds(silence), event.reason) : event.reason;
  lose(event.agent, reason, silent ? heard : now, gone_at);
}

/// Nobody else is late because this process was: silence is counted anew.
void Coordinator::State::on(const CoordinatorStalled& event) {
  if (agents.empty() || policy.in_process) return;
  for (auto& [agent, known] : agents) known.heard = std::min(now, known.heard + event.lasted);
  if (check_agents_at) *check_agents_at += event.lasted;
  if (2 * event.lasted < policy.lost_after) return;  // nobody has given it up
  stalled = event.lasted;
  excused_until = now + policy.lost_after;
  notify(fmt::format("the coordinator did not run for {:.1f} s: was its machine busy or suspended?", seconds(stalled)));
}

void Coordinator::State::lose_the_silent() {
  std::vector<AgentId> silent;
  std::optional<Instant> next;
  for (const auto& [agent, known] : agents) {
    if (policy.in_process && !data.has(agent)) continue;  // a call is no link
    auto until = known.heard + policy.lost_after;
    if (until <= now) {
      silent.push_back(agent);
    } else if (!next || until < *next) {
      next = until;
    }
  }
  check_agents_at = next;
  auto reason = fmt::format("no sign of life for {:g} s", seconds(policy.lost_after));
  for (AgentId agent : silent) {
    if (finished) return;
    if (!agents.contains(agent)) continue;
    emit(Drop{agent, reason});
    lose(agent, reason, agents.at(agent).heard, now);
  }
}

void Coordinator::State::lose(AgentId agent, std::string reason, Instant last_sign_of_life, Instant gone_at) {
  bool excused = now < excused_until;
  if (excused) reason = fmt::format("the coordinator had not answered it for {:.1f} s", seconds(stalled));
  auto key = key_of(agent);
  auto lost = std::move(agents.extract(agent).mapped());
  if (data.has(agent)) return data_lost(agent, lost.hello, reason);
  membership.lose(agent, now, excused ? Blame::kCoordinator : Blame::kHost);
  reach.forget(agent);
  auto member = members.find(agent);
  if (member == members.end()) {
    if (!settling) notify(fmt::format("{} was lost: {}", name_of(lost.hello), reason));
  } else {
    member->second.gone_at = gone_at;
    report_loss(lost.hello, member->second.shares, reason, last_sign_of_life);
  }
  lose_output(agent, key, reason);
  check_gone();
  try_gather();
}

/// All of its nodes, before anything is decided about one of them.
void Coordinator::State::report_loss(const Hello& hello, const std::vector<NodeShare>& shares,
                                     const std::string& reason, Instant last_sign_of_life) {
  bool replaceable = now < excused_until || membership.will_be_enough(now);
  for (const auto& share : shares) {
    pending.emplace_back(NodeLost{generation, share.node, hello.hostname, reason, last_sign_of_life, replaceable, now});
  }
  supervise_pending();
}

void Coordinator::State::start_lost_hosts() {
  if (settling || finished) return;
  for (int order : membership.hosts_to_start(now)) {
    fetched.insert(order);
    emit(StartAgent{order});
  }
  for (int order : data.hosts_to_start(now)) emit(StartAgent{order});
}

}  // namespace taas::run
