#include "node/agent_loop.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>

#include "base/event_queue.hpp"
#include "base/json/json.hpp"
#include "base/log/log.hpp"
#include "base/log/log_file.hpp"
#include "base/timer.hpp"
#include "base/type_name.hpp"
#include "net/addresses.hpp"
#include "node/check/examiner.hpp"
#include "node/code/code_copy.hpp"
#include "proc/family/family.hpp"
#include "proc/spawn/open_files.hpp"

namespace taas::node {
namespace {

constexpr auto kProbePatience = std::chrono::seconds(3);

/// Before the launcher raises it for itself: ranks get it back.
std::int64_t soft_limit_of_open_files() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? static_cast<std::int64_t>(limit.rlim_cur) : -1;
}

Result<Launch> read_launch(const std::string& text) {
  auto value = parse_json(text);
  if (!value) return protocol_error("launch settings are not valid JSON");
  return from_json<Launch>(*value);
}

}  // namespace

struct AgentLoop::State {
  State(boost::asio::io_context& loop, AgentLoopOptions given)
      : io(loop),
        options(std::move(given)),
        agent(options.policy, options.hello),
        deadline(io, [this] { feed(run::DeadlineReached{steady_now()}); }) {}

  void feed(run::AgentEvent event);
  void carry_out(const run::AgentAction& action) {
    std::visit([this](const auto& decided) { act(decided); }, action);
  }
  void act(const run::Send& action) {
    log::debug(LogPart::kAgent, "says {}", alternative_name(action.message));
    uplink->send(action.message);
  }
  void act(const run::Perform& action);
  void perform(const run::CoordinatorMessage& message);
  void perform_held();
  bool forget_held(Generation generation);
  void act(const run::Connect&);
  void act(const run::Leave& action) { on_leave(action); }
  void act(const run::SetDeadline& action) { deadline.set(action.until); }
  void act(const run::ClearDeadline&) { deadline.clear(); }
  void act(const run::TellHere& action) { on_notice(action.text); }
  void act(const run::ShowHere& action) { on_row(action.row); }
  void act(const run::Notify& action) { say(run::Remark{action.text}); }

  void welcome(const run::Welcome& message);
  Result<plan::ResolvedProgram> resolve(Launch launch);
  void prepare_for_check(const Launch& launch);
  void examine();
  void reach(const run::ReachNodes& message);
  Result<> prepare(const run::Welcome& message);
  [[nodiscard]] int count_data_workers(const plan::DataOptions& data) const;
  void probe(const run::ProbeAddresses& message);
  void say(run::AgentMessage message) { feed(run::NodeSaid{std::move(message), steady_now()}); }

  boost::asio::io_context& io;
  AgentLoopOptions options;
  run::Agent agent;
  Timer deadline;
  std::unique_ptr<Uplink> uplink;
  std::function<void(run::Leave)> on_leave = [](const run::Leave&) {};
  std::function<void(const std::string&)> on_notice = [](const std::string&) {};
  std::function<void(const std::string&)> on_row = [](const std::string&) {};
  std::unique_ptr<Node> node;  // from the first Welcome on
  std::int64_t open_files = soft_limit_of_open_files();
  std::optional<ExamineWish> wish;           // from the first Welcome on, where the node is to be looked at
  std::optional<Family> family;              // where there is no node, which has one
  std::unique_ptr<Examiner> examiner;        // until ranks start
  bool takes_files = false;                  // the coordinator has said Welcome over the link at hand
  std::unique_ptr<CodeCopy> code;            // where the coordinator offers the program's files
  std::deque<run::CoordinatorMessage> held;  // until the program's files are there
  std::unique_ptr<net::Connecting> probing;
  EventQueue<run::AgentEvent> turns;
};

AgentLoop::AgentLoop(boost::asio::io_context& io, AgentLoopOptions options)
    : state_(std::make_unique<State>(io, std::move(options))) {}
AgentLoop::~AgentLoop() = default;

void AgentLoop::set_uplink(std::unique_ptr<Uplink> uplink) { state_->uplink = std::move(uplink); }
void AgentLoop::set_on_leave(std::function<void(run::Leave)> on_leave) { state_->on_leave = std::move(on_leave); }
void AgentLoop::set_on_notice(std::function<void(const std::string&)> on_notice) {
  state_->on_notice = std::move(on_notice);
}
void AgentLoop::set_on_row(std::function<void(const std::string&)> on_row) { state_->on_row = std::move(on_row); }
void AgentLoop::set_node(std::unique_ptr<Node> node) { state_->node = std::move(node); }
void AgentLoop::begin() { state_->uplink->connect(); }
void AgentLoop::feed(run::AgentEvent event) { state_->feed(std::move(event)); }
void AgentLoop::close(std::function<void()> on_closed) { state_->uplink->close(std::move(on_closed)); }

void AgentLoop::State::feed(run::AgentEvent event) {
  turns.feed(std::move(event), [this](const run::AgentEvent& next) {
    log::trace(LogPart::kAgent, "event {}", alternative_name(next));
    for (const auto& action : agent.handle(next)) {
      log::trace(LogPart::kAgent, "action {}", alternative_name(action));
      carry_out(action);
    }
  });
}

Result<> AgentLoop::hear_code(std::string_view frame) {
  auto& state = *state_;
  if (!state.code) {
    CodeCopy::Options wanted;
    wanted.environment = state.options.machine.environment;
    wanted.name =
        fmt::format("code-{}-{}", log::name_for_file(state.options.hello.hostname), state.options.hello.instance);
    wanted.send = [&state](std::string asked) { state.uplink->send_file(std::move(asked)); };
    wanted.on_ready = [&state] { state.perform_held(); };
    wanted.remark = [&state](std::string text) { state.say(run::Remark{std::move(text)}); };
    state.code = std::make_unique<CodeCopy>(state.io, std::move(wanted));
  }
  return state.code->hear(frame);
}

void AgentLoop::State::perform_held() {
  for (auto& message : std::exchange(held, {})) perform(message);
}

/// Ranks that wait for the program's files and are to end by now: nothing of them is there.
bool AgentLoop::State::forget_held(Generation generation) {
  const auto waiting = std::find_if(held.begin(), held.end(), [&](const run::CoordinatorMessage& message) {
    const auto* start = std::get_if<run::StartRanks>(&message);
    return start != nullptr && start->generation == generation;
  });
  if (waiting == held.end()) return false;
  held.erase(waiting);
  say(run::GenerationGone{generation, steady_now()});
  return true;
}

/// A piece of a file that was being read for the former link must not come over the new one.
void AgentLoop::State::act(const run::Connect&) {
  takes_files = false;
  held.clear();
  if (code) code->link_is_lost();
  uplink->connect();
}

void AgentLoop::State::act(const run::Perform& action) {
  log::debug(LogPart::kAgent, "was told {}", alternative_name(action.message));
  if (const auto* kill = std::get_if<run::KillGeneration>(&action.message); kill && forget_held(kill->generation))
    return;
  if (const auto* sweep = std::get_if<run::SweepGeneration>(&action.message); sweep && forget_held(sweep->generation))
    return;
  if (code && code->busy()) return held.push_back(action.message);
  perform(action.message);
}

void AgentLoop::State::perform(const run::CoordinatorMessage& told) {
  if (const auto* message = std::get_if<run::Welcome>(&told)) return welcome(*message);
  if (const auto* message = std::get_if<run::ProbeAddresses>(&told)) return probe(*message);
  if (std::holds_alternative<run::ExamineNode>(told)) return examine();
  if (const auto* message = std::get_if<run::ReachNodes>(&told)) return reach(*message);
  if (std::holds_alternative<run::StartRanks>(told)) {
    examiner.reset();
    if (code && !code->state()) return say(run::Refused{code->state().error().message});
  }
  if (!node) return;
  if (code && std::holds_alternative<run::Settle>(told)) return code->tell_left([this, told] { node->perform(told); });
  node->perform(told);
}

/// Where its files are on this machine.
Result<plan::ResolvedProgram> AgentLoop::State::resolve(Launch launch) {
  if (code) launch.settings = code->redirect(std::move(launch.settings));
  return options.resolve(launch, options.machine);
}

/// Nothing of a run is made where nodes are only looked at: what would refuse it is said with the rest.
void AgentLoop::State::prepare_for_check(const Launch& launch) {
  const int own = options.hello.ranks;
  const int ranks = own > 0 ? own : most_ranks_of(launch, options.hello.order);
  auto program = resolve(launch);
  wish = examine_wish(launch.settings, options.machine, program, ranks);
}

void AgentLoop::State::examine() {
  if (!wish) return;
  wish->open_files = open_files;
  if (!node && !family) family.emplace(io);
  auto& children = node ? node->family() : *family;
  examiner = std::make_unique<Examiner>(io, children, options.listen_address,
                                        [this](run::AgentMessage said) { say(std::move(said)); });
  examiner->examine(*wish, options.machine.environment);
}

void AgentLoop::State::reach(const run::ReachNodes& message) {
  if (examiner) examiner->reach(message);
}

void AgentLoop::State::welcome(const run::Welcome& message) {
  if (node) node->link_is_new();
  takes_files = true;
  if (auto prepared = prepare(message); !prepared) {
    log::warning(LogPart::kAgent, "this node refuses the run: {}", prepared.error().message);
    return say(run::Refused{prepared.error().message});
  }
  if (!node) return say(run::Ready{});
  log::info(LogPart::kAgent, "ready; the store has port {}", node->store_port());
  say(run::Ready{node->store_port(), node->data_ports(), node->rank_ports(), node->folder_mark(), node->folder_view()});
}

int AgentLoop::State::count_data_workers(const plan::DataOptions& data) const {
  return options.data_workers > 0 ? options.data_workers : data.cores.value_or(options.machine.cores);
}

/// A node that was lost and comes back is prepared already.
Result<> AgentLoop::State::prepare(const run::Welcome& message) {
  if (code && !code->state()) return code->state();
  if (node) return {};
  auto launch = read_launch(message.run);
  if (!launch) return launch.error();
  if (launch->settings.options.check_only) return prepare_for_check(*launch), Result<>();
  bool is_data = options.hello.role == run::AgentRole::kData;
  const int own = options.hello.ranks;
  const int most_ranks = own > 0 ? own : most_ranks_of(*launch, options.hello.order);
  if (!is_data) {
    auto enough = plan::check_share(launch->settings, options.machine, most_ranks);
    if (!enough) return enough;
    if (auto room = check_open_files_limit(most_ranks); !room) return room;
  }
  auto program = resolve(*launch);
  if (!program) return program.error();
  if (launch->settings.options.preflight) wish = examine_wish(launch->settings, options.machine, program, most_ranks);
  NodeOptions wanted;
  wanted.settings = launch->settings;
  wanted.settings.options.rendezvous.master_port = 0;  // where nodes meet; the store has a port of its own
  wanted.machine = options.machine;
  wanted.program = std::move(*program);
  wanted.store_addresses = options.store_addresses;
  wanted.most_ranks = most_ranks;
  wanted.listen_address = options.listen_address;
  wanted.instance = options.hello.instance;
  wanted.data_key = launch->data_key;
  if (!is_data) wanted.rank_ports = plan::ports_for_ranks(launch->settings.options, most_ranks);
  if (is_data) wanted.data_workers = count_data_workers(launch->settings.options.data);
  if (!is_data) wanted.run_mark = launch->run_mark;
  wanted.send_file = [this](std::string frame) {
    if (takes_files) uplink->send_file(std::move(frame));
  };
  // A machine that was frozen since it was told to start ranks has a fence to heed first.
  wanted.before_start = [this] { feed(run::DeadlineReached{steady_now()}); };
  wanted.open_folder = [&launch, &hello = options.hello] {
    auto folder = storage::open_run_directory(launch->run_folder, launch->log_folder);
    const auto* kind = hello.role == run::AgentRole::kData ? "data-agent" : "agent";
    if (folder) log::open(folder->own_logs(), fmt::format("{}-{}", kind, log::name_for_file(hello.hostname)));
    return folder;
  };
  auto made = Node::prepare(io, std::move(wanted), [this](run::AgentMessage said) { say(std::move(said)); });
  if (!made) return made.error();
  node = std::move(*made);
  return {};
}

void AgentLoop::State::probe(const run::ProbeAddresses& message) {
  probing = net::probe(io, message.addresses, message.port, kProbePatience,
                       [this](std::vector<std::string> reached, const std::string& interface) {
                         if (node) node->use_interface(interface);
                         say(run::AddressesReached{std::move(reached)});
                       });
}

}  // namespace taas::node
