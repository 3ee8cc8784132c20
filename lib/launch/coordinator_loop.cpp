#include "launch/coordinator_loop.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/event_queue.hpp"
#include "base/log/log.hpp"
#include "base/timer.hpp"
#include "launch/connected_agents.hpp"
#include "launch/coordinator_policy.hpp"
#include "launch/failure_record.hpp"
#include "launch/output/console_queue.hpp"
#include "launch/output/display.hpp"
#include "launch/output/incoming_output.hpp"
#include "node/job_signals.hpp"
#include "proc/spawn/open_files.hpp"
#include "run/events/type_name.hpp"

namespace taas::launch {
namespace {

using Level = ui::Message::Level;

constexpr std::size_t kConnectionsOfRank = 8;               // to the store; it has few
constexpr auto kJournalPatience = std::chrono::seconds(5);  // at the end, for its disk

/// The display cannot tell of it any more, and perhaps nobody can. Returns what the launcher exits with.
int tell_loss(const Error& error, int code) {
  auto text = fmt::format("taas-run: {}; what was not shown is in the run's log files\n", error.message);
  std::fputs(text.c_str(), stderr);
  return code == 0 ? 1 : code;
}

node::JobPlace job_place(const plan::LaunchPlan& plan) {
  if (!plan.job) return node::JobPlace::kNone;
  if (plan.job->step) return node::JobPlace::kStep;
  if (std::holds_alternative<plan::OneMachine>(plan.launch_mode)) return node::JobPlace::kScript;
  return std::holds_alternative<plan::SlurmAllocation>(plan.launch_mode) ? node::JobPlace::kFront
                                                                         : node::JobPlace::kNone;
}

/// What a message tells of data delivery.
std::optional<run::DataEvent> data_event(const run::AgentMessage& message) {
  return std::visit(
      []<class Told>(const Told& told) -> std::optional<run::DataEvent> {
        if constexpr (std::is_constructible_v<run::DataEvent, Told>) return run::DataEvent(told);
        return std::nullopt;
      },
      message);
}

}  // namespace

struct CoordinatorLoop::State {
  State(boost::asio::io_context& loop, CoordinatorLoopOptions given, JournalFile file)
      : io(loop),
        options(std::move(given)),
        journal(io, std::move(file), [this](const Error& error) { warn(error); }),
        display(io, options.plan, options.machine, [this](bool crowded) { output.hold(crowded); }),
        output(io, {[this](const run::Output& next) { show(next); },
                    [this](run::AgentId from) {
                      act(run::Tell{from, run::OutputShown{}});
                    }}),
        coordinator(options.policy),
        incoming(io, options.run_folder,
                 {[this](run::AgentId to, const run::CoordinatorMessage& message) {
                    act(run::Tell{to, message});
                  },
                  [this](std::string text) { display.say(Level::kWarning, std::move(text)); }}),
        deadline(io, [this] { happen(run::DeadlineReached{steady_now()}); }),
        ticker(io, [this] { tick(); }) {
    if (!options.policy.in_process) tick();
  }

  void happen(run::Event event) { feed(std::move(event)); }
  void tick();
  void note_stall();
  void feed(run::CoordinatorEvent event);
  void carry_out(const run::CoordinatorAction& action) {
    std::visit([this](const auto& decided) { act(decided); }, action);
  }
  void act(const run::Happened& action);
  void act(const run::Action& action);
  void act(const run::Tell& action);
  void act(const run::Drop& action) { drop(action.agent); }
  void act(const run::StartAgent& action) { on_start_agent(action.order); }
  void act(const run::ReceiveFiles& action) { incoming.receive(action); }
  void act(const run::PlaceOutput& action);
  void act(const run::ReleaseNodes&) { on_release(); }
  void act(const run::AwaitAnswers& action) { deadline.set(action.until); }
  void act(const run::Parted&) { parted = true; }
  [[nodiscard]] run::StartRanks through_meeting(run::StartRanks start) const;
  bool drop(run::AgentId agent);

  void obey(const run::SetDeadline& action) { deadline.set(action.at); }
  void obey(const run::ClearDeadline&) { deadline.clear(); }
  void obey(const run::RequestStop&) { stop_requested = true; }
  void obey(const run::Finish& action);
  template <class Decided>
  void obey(const Decided&) {}

  void show(const run::Output& output);
  void tell(const run::DataEvent& event);
  void receive(int signal, Instant at, bool reached_ranks);
  void warn(const Error& error) { display.say(Level::kWarning, error.message); }

  boost::asio::io_context& io;
  CoordinatorLoopOptions options;
  FailureRecord failure_record{options.machine.environment};
  Journal journal;
  Display display;
  ConsoleQueue output;  // of ranks
  run::Coordinator coordinator;
  IncomingOutput incoming;
  Timer deadline;
  Timer ticker;  // where agents wait for answers
  std::optional<Instant> ticked;
  std::function<void(int)> on_start_agent = [](int) {};
  std::function<void(int)> on_arrival = [](int) {};
  std::function<void()> on_release = [] {};
  ConnectedAgents agents;
  EventQueue<run::CoordinatorEvent> turns;
  std::size_t files = 0;
  std::optional<node::JobSignals> signals;  // from execute() on
  std::optional<run::Verdict> verdict;
  bool told_end = false;  // to the user: whatever is heard now is not shown any more
  bool parted = false;
  bool stop_requested = false;
  node::StorePlace store_place;
};

CoordinatorLoop::CoordinatorLoop(boost::asio::io_context& io, CoordinatorLoopOptions options, JournalFile journal)
    : state_(std::make_unique<State>(io, std::move(options), std::move(journal))) {}
CoordinatorLoop::~CoordinatorLoop() = default;

run::AgentId CoordinatorLoop::add(std::unique_ptr<Downlink> downlink) {
  return state_->agents.add(std::move(downlink));
}

void CoordinatorLoop::hear(run::AgentId agent, run::AgentMessage message) {
  if (state_->told_end && !run::counts_after_the_end(message)) return;
  if (auto* output = std::get_if<run::Output>(&message)) return state_->output.add(agent, std::move(*output));
  if (!std::holds_alternative<run::Heartbeat>(message)) state_->output.keep_order();
  if (const auto* remark = std::get_if<run::Remark>(&message)) {
    return state_->display.say(Level::kWarning, state_->agents.with_host(agent, remark->text));
  }
  if (auto news = data_event(message)) state_->tell(*news);
  auto now = steady_now();
  log::debug(LogPart::kCoordinator, "agent {} says {}", agent.value, run::alternative_name(message));
  if (const auto* hello = std::get_if<run::Hello>(&message)) {
    log::info(LogPart::kCoordinator, "agent {} is {} of {}, version {}, at {}", agent.value, hello->order,
              hello->hostname, hello->version, fmt::join(hello->addresses, ", "));
    if (!state_->options.policy.in_process) state_->agents.note_host(agent, *hello);
    state_->on_arrival(hello->order);
    return state_->feed(run::AgentArrived{agent, *hello, now});
  }
  state_->feed(run::AgentSaid{agent, std::move(message), now});
}

void CoordinatorLoop::hear_file(run::AgentId agent, std::string_view frame) {
  if (state_->told_end) return;
  auto heard = state_->incoming.hear(agent, frame);
  if (!heard) leave(agent, heard.error().message, false);
}

void CoordinatorLoop::leave(run::AgentId agent, const std::string& reason, bool closed_by_agent) {
  if (!state_->drop(agent)) return;
  log::info(LogPart::kCoordinator, "agent {} is gone: {}{}", agent.value, reason,
            closed_by_agent ? " (closed there)" : "");
  state_->feed(run::AgentLeft{agent, reason, closed_by_agent, steady_now()});
}

void CoordinatorLoop::host_failed(int order, const std::string& message) {
  log::warning(LogPart::kCoordinator, "the agent of host {} has failed: {}", order, message);
  state_->feed(run::HostFailed{order, message, steady_now()});
}

void CoordinatorLoop::set_on_start_agent(std::function<void(int order)> on_start_agent) {
  state_->on_start_agent = std::move(on_start_agent);
}

void CoordinatorLoop::set_on_arrival(std::function<void(int order)> on_arrival) {
  state_->on_arrival = std::move(on_arrival);
}

void CoordinatorLoop::set_on_release(std::function<void()> on_release) { state_->on_release = std::move(on_release); }

void CoordinatorLoop::nodes_over(const std::string& why) {
  log::warning(LogPart::kCoordinator, "nobody comes any more: {}", why);
  state_->feed(run::NodesOver{why, steady_now()});
}

void CoordinatorLoop::say(std::string text) {
  if (!state_->told_end) state_->display.say(Level::kInfo, std::move(text));
}

int CoordinatorLoop::execute() {
  State& state = *state_;
  for (const auto& notice : state.options.plan.notices) state.display.say(Level::kInfo, notice);
  state.signals.emplace(state.io, std::vector{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH},
                        job_place(state.options.plan), [&state](int signal, Instant at, bool reached_ranks) {
                          state.receive(signal, at, reached_ranks);
                        });
  state.options.started.at = steady_now();
  state.happen(state.options.started);
  while (!state.verdict) state.io.run_one();
  if (auto written = state.failure_record.write(*state.verdict); !written) state.warn(written.error());
  if (auto kept = state.journal.finish(kJournalPatience); !kept) state.warn(kept.error());
  state.output.show_all();
  auto shown = state.display.finish();
  state.told_end = true;
  while (!state.parted) state.io.run_one();
  const auto code = state.verdict->exit_code;
  return shown ? code : tell_loss(shown.error(), code);
}

const node::StorePlace& CoordinatorLoop::store_place() const { return state_->store_place; }

bool CoordinatorLoop::told_to_stop() const {
  return state_->stop_requested || (state_->verdict && state_->verdict->cause == run::Cause::kStopped);
}

void CoordinatorLoop::State::receive(int signal, Instant at, bool reached_ranks) {
  if (signal == SIGWINCH) return told_end ? void() : display.resize();
  happen(run::SignalReceived{signal, at, reached_ranks});
}

void CoordinatorLoop::State::tick() {
  note_stall();
  ticked = steady_now();
  ticker.set(*ticked + stall_watch(options.policy).tick);
}

/// Before anything that waited meanwhile is heard.
void CoordinatorLoop::State::note_stall() {
  auto now = steady_now();
  auto former = ticked;
  if (!former || now - *former < stall_watch(options.policy).longest_gap) return;
  ticked = now;
  log::warning(LogPart::kCoordinator, "nothing was done for {} ms: this process did not run",
               std::chrono::duration_cast<std::chrono::milliseconds>(now - *former).count());
  feed(run::CoordinatorStalled{now - *former, now});
}

void CoordinatorLoop::State::feed(run::CoordinatorEvent event) {
  note_stall();
  turns.feed(std::move(event), [this](const run::CoordinatorEvent& next) {
    log::trace(LogPart::kCoordinator, "event {}", run::alternative_name(next));
    for (const auto& action : coordinator.handle(next)) {
      log::trace(LogPart::kCoordinator, "action {}", run::alternative_name(action));
      carry_out(action);
    }
  });
}

void CoordinatorLoop::State::act(const run::Happened& action) {
  if (const auto* settled = std::get_if<run::OutputSettled>(&action.event))
    files = static_cast<std::size_t>(settled->files);
  journal.write(action.event);
  display.show(ui::RunEvent{action.event});
}

void CoordinatorLoop::State::act(const run::Action& action) {
  journal.write(action);
  std::visit([this](const auto& decided) { obey(decided); }, action);
  display.show(ui::RunAction{action});
}

void CoordinatorLoop::State::act(const run::Tell& action) {
  auto* agent = agents.find(action.agent);
  const auto* start = std::get_if<run::StartRanks>(&action.message);
  if (start != nullptr) store_place = {start->master_addr, start->master_port};
  if (agent == nullptr) return;
  log::debug(LogPart::kCoordinator, "tells agent {} {}", action.agent.value, run::alternative_name(action.message));
  start != nullptr ? agent->tell(through_meeting(*start)) : agent->tell(action.message);
}

/// torchrun's MASTER_PORT is the port that the user gave, and torch takes only that one for the launcher's: a program
/// that names it itself, as in tcp://localhost:29500, would try to serve a store there.
run::StartRanks CoordinatorLoop::State::through_meeting(run::StartRanks start) const {
  const auto& meeting = options.meeting;
  const auto passages = kConnectionsOfRank * static_cast<std::size_t>(start.world_size);
  const auto address = meeting.address_for(start.master_addr);
  if (address.empty() || passages > meeting.most_passages) return start;
  start.master_addr = address;
  start.master_port = meeting.port;
  return start;
}

bool CoordinatorLoop::State::drop(run::AgentId agent) {
  incoming.forget(agent);
  return agents.drop(agent);
}

void CoordinatorLoop::State::act(const run::PlaceOutput& action) {
  incoming.place(action, [this](const storage::Placed& placed) {
    for (const auto& remark : placed.remarks) display.say(Level::kWarning, remark);
    feed(run::OutputPlaced{placed.error, placed.files, steady_now()});
  });
}

void CoordinatorLoop::State::obey(const run::Finish& action) {
  display.set_output(options.output_directory, files);
  verdict = action.verdict;
}

void CoordinatorLoop::State::show(const run::Output& said) {
  for (const auto& line : said.lines) {
    auto stream = line.is_stderr ? ui::Stream::kStderr : ui::Stream::kStdout;
    display.show(ui::OutputLine{line.rank, stream, line.text, line.progress, line.at, line.open, line.raw});
  }
}

void CoordinatorLoop::State::tell(const run::DataEvent& event) {
  journal.write(event);
  display.show(ui::DataNews{event});
}

}  // namespace taas::launch
