#include "node/agent_loop.hpp"

#include "base/event_queue.hpp"
#include "base/json/json.hpp"
#include "base/log/log.hpp"
#include "base/log/log_file.hpp"
#include "base/timer.hpp"
#include "net/addresses.hpp"
#include "node/ranks/rank_starts.hpp"
#include "proc/spawn/open_files.hpp"
#include "run/events/type_name.hpp"

namespace taas::node {
namespace {

constexpr auto kProbePatience = std::chrono::seconds(3);

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
    log::debug(LogPart::kAgent, "says {}", run::alternative_name(action.message));
    uplink->send(action.message);
  }
  void act(const run::Perform& action);
  void act(const run::Connect&);
  void act(const run::Ask& action) { uplink->ask(action.heartbeat); }
  void act(const run::Leave& action) { on_leave(action); }
  void act(const run::SetDeadline& action) { deadline.set(action.at); }
  void act(const run::ClearDeadline&) { deadline.clear(); }
  void act(const run::TellHere& action) { on_notice(action.text); }
  void act(const run::Notify& action) { say(run::Remark{action.text}); }

  void welcome(const run::Welcome& message);
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
  std::unique_ptr<Node> node;  // from the first Welcome on
  bool takes_files = false;    // the coordinator has said Welcome over the link at hand
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
void AgentLoop::set_node(std::unique_ptr<Node> node) { state_->node = std::move(node); }
void AgentLoop::begin() { state_->uplink->connect(); }
void AgentLoop::feed(run::AgentEvent event) { state_->feed(std::move(event)); }
void AgentLoop::close(std::function<void()> on_closed) { state_->uplink->close(std::move(on_closed)); }

void AgentLoop::State::feed(run::AgentEvent event) {
  turns.feed(std::move(event), [this](const run::AgentEvent& next) {
    log::trace(LogPart::kAgent, "event {}", run::alternative_name(next));
    for (const auto& action : agent.handle(next)) {
      log::trace(LogPart::kAgent, "action {}", run::alternative_name(action));
      carry_out(action);
    }
  });
}

/// A piece of a file that was being read for the former link must not come over the new one.
void AgentLoop::State::act(const run::Connect&) {
  takes_files = false;
  uplink->connect();
}

void AgentLoop::State::act(const run::Perform& action) {
  log::debug(LogPart::kAgent, "was told {}", run::alternative_name(action.message));
  if (const auto* message = std::get_if<run::Welcome>(&action.message)) return welcome(*message);
  if (const auto* message = std::get_if<run::ProbeAddresses>(&action.message)) return probe(*message);
  if (node) node->perform(action.message);
}

void AgentLoop::State::welcome(const run::Welcome& message) {
  if (node) node->link_is_new();
  takes_files = true;
  if (auto prepared = prepare(message); !prepared) {
    log::warning(LogPart::kAgent, "this node refuses the run: {}", prepared.error().message);
    return say(run::Refused{prepared.error().message});
  }
  log::info(LogPart::kAgent, "ready; the store has port {}", node->store_port());
  say(run::Ready{node->store_port(), node->data_ports(), node->rank_ports(), node->folder_mark(), node->folder_view()});
}

int AgentLoop::State::count_data_workers(const plan::DataOptions& data) const {
  return options.data_workers > 0 ? options.data_workers : data.cores.value_or(options.machine.cores);
}

/// A node that was lost and comes back is prepared already.
Result<> AgentLoop::State::prepare(const run::Welcome& message) {
  if (node) return {};
  auto launch = read_launch(message.run);
  if (!launch) return launch.error();
  bool is_data = options.hello.role == run::AgentRole::kData;
  const int own = options.hello.ranks;
  const int most_ranks = own > 0 ? own : most_ranks_of(*launch, options.hello.order);
  if (!is_data) {
    auto enough = plan::check_share(launch->settings, options.machine, most_ranks);
    if (!enough) return enough;
    if (auto room = check_open_files_limit(most_ranks); !room) return room;
    auto bound = bind_ranks(launch->settings, options.machine, place_ranks(share_ranks(std::vector{most_ranks})));
    if (!bound) return bound.error();
  }
  auto program = options.resolve(*launch, options.machine);
  if (!program) return program.error();
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
