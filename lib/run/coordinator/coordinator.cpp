#include "run/coordinator/coordinator.hpp"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "run/events/words.hpp"

namespace taas::run {
namespace {

constexpr auto kFarewellPatience = std::chrono::seconds(10);  // for agents that have not answered how the run ended
constexpr const char* kConnectedAgain =
    "it lost its connection; where a network stalls or answers late, --node-timeout has to be larger";

}  // namespace

Coordinator::Coordinator(CoordinatorPolicy policy)
    : policy_(std::move(policy)),
      supervisor_(policy_.run),
      agents_({policy_.lost_after, policy_.closed_grace}, decisions_),
      signals_(policy_, agents_),
      membership_(membership_policy(policy_)),
      machines_(policy_, decisions_, agents_),
      admission_(policy_.version, agents_, membership_, machines_.nodes()),
      members_(decisions_, agents_),
      gathering_(policy_, decisions_, agents_, membership_, members_, machines_.loader()),
      output_(policy_.folder, decisions_, agents_) {}

std::vector<CoordinatorAction> Coordinator::handle(const CoordinatorEvent& event) {
  if (decisions_.parted()) return {};
  decisions_.begin(instant_of(event));
  if (decisions_.finished()) {
    see_off(event);
    return decisions_.take();
  }
  std::visit([this](const auto& happened) { on(happened); }, event);
  supervise();
  decisions_.finished() ? await_answers() : announce_deadline();
  return decisions_.take();
}

/// Tells the Supervisor what was reported, and carries out what it decides, which may bring further reports.
void Coordinator::supervise() {
  while (auto report = decisions_.next_report()) {
    mistakes_.see(*report);
    auto decided = supervisor_.handle(*report);
    decisions_.emit(Happened{std::move(*report)});
    for (const auto& action : decided) std::visit([this](const auto& chosen) { execute(chosen); }, action);
  }
}

void Coordinator::announce_deadline() {
  auto next = next_deadline();
  if (next == announced_) return;
  announced_ = next;
  decisions_.emit(next ? Action(SetDeadline{*next}) : Action(ClearDeadline{}));
}

std::optional<Instant> Coordinator::next_deadline() const {
  bool settling = output_.settling();
  auto start_at = settling ? std::nullopt : earliest({membership_.next_start(), machines_.next_start()});
  return earliest(
      {supervisor_deadline_, agents_.silence().next_check(), gathering_.next_check(), members_.next_check(), start_at});
}

void Coordinator::on(const Event& event) {
  if (std::holds_alternative<DeadlineReached>(event)) return on_deadline();
  if (const auto* signal = std::get_if<SignalReceived>(&event)) signals_.see(signal->signal);
  decisions_.report(event);
}

/// The timer has run out, perhaps a little early: what is not due yet is announced again.
void Coordinator::on_deadline() {
  auto now = decisions_.now();
  announced_.reset();
  if (members_.waits_for_silent()) supervisor_.give_up_later(now);
  if (supervisor_deadline_ && *supervisor_deadline_ <= now) {
    supervisor_deadline_.reset();
    decisions_.report(DeadlineReached{now});
    supervise();
  }
  look_for_silence();
  gathering_.expire(now);
  gathering_.advance();
  supervise();
  start_lost_hosts();
  members_.check_gone();
}

/// An agent that connects again has killed its ranks before: what the coordinator knew of it is over.
void Coordinator::on(const AgentArrived& event) {
  const auto& [agent, hello, at] = event;
  if (auto former = agents_.connected(hello.instance)) {
    decisions_.emit(Drop{*former, "it has connected again"});
    lose(*former, {kConnectedAgain, agents_.silence().last_heard(*former), decisions_.now()});
    supervise();
  }
  if (decisions_.finished()) return agents_.dismiss_latecomer(agent, hello, farewell_);
  agents_.add(agent, hello);
  if (auto why = admission_.refusal(hello); !why.empty()) return reject(agent, hello, why);
  if (hello.role == AgentRole::kData) {
    machines_.arrive(agent, hello);
  } else {
    membership_.arrive(agent, hello, decisions_.now());
    if (!policy_.in_process) agents_.silence().watch(agent, decisions_.now());
  }
  agents_.send(agent, Welcome{policy_.launch});
}

/// An agent that would be the second of its place leaves the first one where it is.
void Coordinator::reject(AgentId agent, const Hello& hello, const std::string& why) {
  bool is_data = hello.role == AgentRole::kData;
  bool second = is_data || membership_.holder(hello.order);
  if (!second) {
    membership_.arrive(agent, hello, decisions_.now());
    return turn_away(agent, why);
  }
  if (!admission_.came_back_twice(hello)) decisions_.notify(fmt::format("{} was sent away: {}", name_of(hello), why));
  agents_.dismiss(agent, why, kUsageExitCode);
  if (!is_data || machines_.nodes().holder(hello.order)) return;
  machines_.fail(hello.order);
  on_changed_machines();
}

/// The host will not take part. When the run cannot do without, its report says why; else a line does.
void Coordinator::turn_away(AgentId agent, const std::string& why) {
  auto text = fmt::format("{} cannot take part: {}", name_of(agents_.at(agent).hello), why);
  agents_.dismiss(agent, why, kUsageExitCode);
  gathering_.forget(agent);
  membership_.refuse(agent, text, decisions_.now());
  if (!gathering_.hopeless()) decisions_.notify(text);
  gathering_.advance();
}

void Coordinator::on(const HostFailed& event) {
  if (machines_.nodes().owns_order(event.order)) {
    machines_.fail(event.order);
    decisions_.notify(event.message);
    return on_changed_machines();
  }
  membership_.fail(event.order, event.message, decisions_.now());
  if (!gathering_.hopeless()) decisions_.notify(event.message);
  gathering_.advance();
}

void Coordinator::on(const AgentSaid& event) {
  if (const auto* asks = asks_aside(event.message)) return agents_.answer_aside(event.agent, *asks);
  if (!agents_.contains(event.agent)) return;
  agents_.silence().on_sign_of_life(event.agent, decisions_.now());
  std::visit([&](const auto& message) { on(event.agent, message); }, event.message);
  tell_returned();
}

void Coordinator::on(AgentId agent, const Ready& message) {
  if (machines_.nodes().has(agent)) {
    machines_.ready(agent, message);
    return on_changed_machines();
  }
  agents_.ready(agent, message);
  output_.receive_from(agent);
  machines_.tell(agent);
  membership_.ready(agent);
  gathering_.advance();
}

void Coordinator::on(AgentId agent, const Refused& message) {
  if (!machines_.nodes().has(agent)) return turn_away(agent, message.message);
  machines_.refuse(agent, message.message, kUsageExitCode);
  on_changed_machines();
}

void Coordinator::on(AgentId agent, const Signalled& message) {
  if (policy_.nodes_are_held && machines_.nodes().has(agent)) return dismiss_machine(agent, message.signal);
  bool free_to_leave =
      !output_.settling() && !machines_.nodes().has(agent) && signals_.lets_leave(agent, message.signal);
  if (free_to_leave && membership_.enough_without(agent, decisions_.now())) return let_go(agent, message.signal);
  if (signals_.concerns_the_run(message.signal))
    on(Event(SignalReceived{message.signal, decisions_.now(), message.reached_ranks}));
}

/// Its job ends, which is not the ranks' job: SLURM may start it again, and others may be left.
void Coordinator::dismiss_machine(AgentId agent, int signal) {
  if (!policy_.run.stops_the_run(signal)) return;
  auto hello = agents_.at(agent).hello;
  machines_.lose(agent);
  machines_.tell_loss(hello, {fmt::format("SLURM sent {}", signal_name(signal)), {}, {}});
  agents_.dismiss(agent, "its job ends", 128 + signal);
  on_changed_machines();
}

/// The run goes on without it.
void Coordinator::let_go(AgentId agent, int signal) {
  const auto hello = agents_.at(agent).hello;
  signals_.leave(agent, signal);
  membership_.leave(agent);
  gathering_.forget(agent);
  if (members_.contains(agent)) {
    auto node = members_.first_node_of(agent);
    return decisions_.report(NodeLeaves{members_.generation(), node, hello.hostname, signal, decisions_.now()});
  }
  decisions_.notify(fmt::format("{} leaves: it was told to stop by {}", name_of(hello), signal_name(signal)));
  signals_.part();
  gathering_.advance();
}

void Coordinator::on(AgentId agent, const SignalAnswer& message) {
  if (!members_.contains(agent) || message.generation != members_.generation()) return;
  if (auto line = signals_.count(message); !line.empty()) decisions_.notify(std::move(line));
}

void Coordinator::on(AgentId agent, const RankTrained& message) {
  if (members_.owns(agent, message.generation, message.rank)) mistakes_.add(message.rank, message.facts);
}

void Coordinator::on(AgentId agent, const LoaderPrepared& /*message*/) {
  machines_.prepared(agent);
  gathering_.advance();
}

void Coordinator::on(AgentId agent, const LoaderFailed& message) {
  auto where = machines_.nodes().has(agent) ? agents_.at(agent).hello.hostname + ": " : std::string();
  gathering_.fail(where + message.message, kUsageExitCode);
}

void Coordinator::on_changed_machines() {
  machines_.tell_all();
  stop_without_machines();
  if (auto why = machines_.loader().hopeless(); !why.empty()) return gathering_.fail(why, kUsageExitCode);
  gathering_.advance();
}

/// Ranks would wait for batches that nobody makes. They may still save what they have.
void Coordinator::stop_without_machines() {
  bool without = policy_.nodes_are_held && machines_.nodes().all_lost();
  if (!without || gathering_.active() || output_.settling() || !signals_.concerns_the_run(SIGTERM)) return;
  decisions_.notify("no CPU machine is left to make batches: the run is stopped");
  on(Event(SignalReceived{SIGTERM, decisions_.now()}));
}

void Coordinator::on(const AgentLeft& event) {
  agents_.left(event.agent);
  if (agents_.contains(event.agent)) lose(event.agent, agents_.silence().loss_of_link(event, decisions_.now()));
}

void Coordinator::on(const CoordinatorStalled& event) {
  if (agents_.empty() || policy_.in_process) return;
  supervisor_.postpone_deadlines(event.lasted);
  if (!agents_.silence().excuse(event.lasted, decisions_.now())) return;
  decisions_.notify(fmt::format("the coordinator did not run for {:.1f} s: was its machine busy or suspended?",
                                seconds(event.lasted)));
}

void Coordinator::look_for_silence() {
  const auto found = agents_.silence().check(decisions_.now());
  tell_returned();
  if (!found.silent.empty()) {
    decisions_.report(NodesSilent{nodes_of(found.silent), names_of(found.silent), decisions_.now() - found.silence,
                                  policy_.lost_after, decisions_.now()});
    supervise();
  }
  for (AgentId agent : found.lost) {
    if (decisions_.finished()) return;
    if (!agents_.contains(agent)) continue;
    auto loss = agents_.silence().loss_of_silent(agent, decisions_.now());
    decisions_.emit(Drop{agent, loss.reason});
    lose(agent, std::move(loss));
    supervise();
  }
}

/// Of standing-by ones it is -1.
std::vector<NodeIndex> Coordinator::nodes_of(const std::vector<AgentId>& agents) const {
  std::vector<NodeIndex> nodes;
  for (AgentId agent : agents) {
    nodes.push_back(members_.contains(agent) ? members_.first_node_of(agent) : NodeIndex{-1});
  }
  return nodes;
}

std::vector<std::string> Coordinator::names_of(const std::vector<AgentId>& agents) const {
  std::vector<std::string> names;
  for (AgentId agent : agents) names.push_back(name_of(agents_.at(agent).hello));
  return names;
}

void Coordinator::tell_returned() {
  const auto [agents, silence] = agents_.silence().take_returned();
  if (agents.empty()) return;
  decisions_.report(NodesAnswer{nodes_of(agents), names_of(agents), silence, decisions_.now()});
}

void Coordinator::lose(AgentId agent, AgentLoss loss) {
  bool excused = agents_.silence().is_excused(decisions_.now());
  if (excused) loss.reason = agents_.silence().reason_of_excused();
  auto key = agents_.key_of(agent);
  auto hello = agents_.remove(agent).hello;
  if (machines_.nodes().has(agent)) {
    machines_.lose(agent);
    if (!output_.settling()) machines_.tell_loss(hello, loss);
    return on_changed_machines();
  }
  lose_member(agent, hello, loss, excused ? Blame::kCoordinator : Blame::kHost);
  output_.lose(agent, key, loss.reason);
  supervise();
  members_.check_gone();
  supervise();
  gathering_.advance();
}

void Coordinator::lose_member(AgentId agent, const Hello& hello, const AgentLoss& loss, Blame blame) {
  membership_.lose(agent, decisions_.now(), blame);
  gathering_.forget(agent);
  if (members_.contains(agent)) {
    bool replaceable = blame == Blame::kCoordinator || membership_.will_be_enough(decisions_.now());
    members_.lose(agent, hello.hostname, loss, replaceable);
    return supervise();
  }
  auto text = fmt::format("{} was lost: {}", name_of(hello), loss.reason);
  if (!output_.settling()) decisions_.notify(text);
}

void Coordinator::start_lost_hosts() {
  if (output_.settling() || decisions_.finished()) return;
  for (int order : membership_.hosts_to_start(decisions_.now())) decisions_.emit(StartAgent{order});
  machines_.start_lost(decisions_.now());
}

void Coordinator::execute(const GatherNodes& decided) {
  decisions_.emit(Action(decided));
  signals_.part();
  gathering_.begin(decided.generation);
  gathering_.advance();
}

void Coordinator::execute(const StartGeneration& decided) {
  decisions_.emit(Action(decided));
  members_.start();
  output_.assign(members_.agent_of_node(), decided.generation);
  for (auto& [agent, start] : members_.starts(gathering_.meeting_point())) {
    start.output = output_.duty_of(agent);
    start.folded = decided.folded;
    agents_.send(agent, start);
  }
}

void Coordinator::execute(const SignalRanks& decided) {
  decisions_.emit(Action(decided));
  const int agents = members_.execute(decided);
  if (!decided.to_end) signals_.ask(decided.signal, agents);
}

void Coordinator::execute(const RequestStop& decided) {
  decisions_.emit(Action(decided));
  const int agents = members_.execute(decided);
  if (decided.signal != 0) signals_.ask(decided.signal, agents);
}

void Coordinator::execute(const ReportFailure& decided) {
  decisions_.emit(Action(decided));
  if (decided.restarting) output_.abandon();
}

/// Everybody is told before the run is over.
void Coordinator::execute(const Finish& decided) {
  bool told = policy_.tells_verdict && decided.verdict.exit_code != 0;
  farewell_ = {told ? decided.verdict.summary : "", decided.verdict.exit_code};
  agents_.dismiss_all(farewell_);
  if (announced_) decisions_.emit(Action(ClearDeadline{}));
  for (auto& line : mistakes_.lines()) decisions_.notify(std::move(line));
  decisions_.finish();
  decisions_.emit(Action(decided));
}

/// An agent whose link stalls just now hears nothing of the end. It asks over another connection, or gives the link up
/// and comes again: it must not find nobody, and call a run a failure that has ended well.
void Coordinator::await_answers() {
  part_at_ = decisions_.now() + kFarewellPatience;
  agents_.all_have_answered() ? decisions_.part() : decisions_.emit(AwaitAnswers{part_at_});
}

void Coordinator::see_off(const CoordinatorEvent& event) {
  if (const auto* arrived = std::get_if<AgentArrived>(&event)) {
    agents_.dismiss_latecomer(arrived->agent, arrived->hello, farewell_);
  }
  if (const auto* said = std::get_if<AgentSaid>(&event)) {
    if (const auto* goodbye = std::get_if<Goodbye>(&said->message)) agents_.on(said->agent, *goodbye);
    const auto* asks = asks_aside(said->message);
    if (asks != nullptr && agents_.connected(asks->instance)) decisions_.emit(Tell{said->agent, farewell_});
  }
  if (const auto* gone = std::get_if<AgentLeft>(&event)) agents_.left(gone->agent);
  const auto* happened = std::get_if<Event>(&event);
  const auto* signal = happened ? std::get_if<SignalReceived>(happened) : nullptr;
  bool hurried = signal != nullptr && policy_.run.stops_the_run(signal->signal);
  if (hurried || decisions_.now() >= part_at_ || agents_.all_have_answered()) decisions_.part();
}

}  // namespace taas::run
