#include "node/node.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/disk_thread.hpp"
#include "base/log/log.hpp"
#include "base/timer.hpp"
#include "net/held_ports.hpp"
#include "node/data/data_delivery.hpp"
#include "node/node_store.hpp"
#include "node/output/node_output.hpp"
#include "node/output/outbox.hpp"
#include "node/output/private_remarks.hpp"
#include "node/ranks/node_ranks.hpp"
#include "node/ranks/protection.hpp"
#include "node/stop_wish.hpp"
#include "node/timers/node_timers.hpp"
#include "plan/launch_mode/rendezvous.hpp"
#include "proc/family/family.hpp"
#include "proc/family/standstill.hpp"
#include "proc/spawn/open_files.hpp"
#include "storage/folder_marker.hpp"
#include "storage/private_files.hpp"

namespace taas::node {
namespace {

constexpr Duration kLeftoverNotice = std::chrono::seconds(2);
constexpr std::size_t kMostNamed = 3;

}  // namespace

/// The parts of a node, and which of them carries out what the coordinator asks for.
struct Node::State {
  State(boost::asio::io_context& loop, NodeOptions given, Say say)
      : io(loop),
        options(std::move(given)),
        outbox(loop, {options.in_process, std::move(say), [this](bool crowded) { hold_output(crowded); }}),
        disk(loop),
        family(loop),
        open_files_limit(raise_open_files_limit()) {}

  Result<> open_store();
  Result<> hold_ports();
  Result<> open_timers();
  Result<> open_folder();
  Result<> open_data();
  void open_output();
  void open_ranks();

  template <class Message>
  void perform(const Message&) {}
  void perform(const run::StartRanks& start);
  void perform(const run::SignalRanks& request) { stop_wish.pass(request); }
  void perform(const run::KillGeneration&) { sweep(SIGKILL); }
  void perform(const run::SweepGeneration& request) { sweep(request.signal); }
  void perform(const run::OutputShown&) { outbox.shown(); }
  void perform(const run::RequestStop& request);
  void perform(const run::Settle& request);
  void perform(const run::Abandon&) { output->abandon(); }
  void perform(const run::DataWorkers& list);
  void perform(const run::LookAtWriters& request);
  void perform(const run::WritersAnswer& answer) { output->hear(answer); }
  void perform(const run::FileProgress& progress) { output->hear(progress); }
  void perform(const run::FileStored& stored) { output->hear(stored); }

  void serve_store(const run::StartRanks& start, bool first_node);
  void add_evidence(Rank rank, run::Evidence& evidence);
  void hold_output(bool hold);
  void signal(const run::SignalRanks& request);
  void sweep(int signal);
  void name_leftovers(bool in_peace);
  void say_settled(const std::string& error);
  void remark(std::string text) { outbox.say(run::Remark{std::move(text)}); }
  [[nodiscard]] Generation generation() const { return ranks->generation(); }
  /// A wish to stop one generation, as when a node leaves, is none to stop the next.
  [[nodiscard]] HeldPath stop_file(Generation of) const {
    return {folder->held(), fmt::format("stop-requested-{}", of.value)};
  }

  boost::asio::io_context& io;
  NodeOptions options;
  std::optional<storage::RunDirectory> folder;  // always, once prepared
  Outbox outbox;
  DiskThread disk;
  Family family;
  std::optional<std::uint64_t> open_files_limit;  // the user's, given back to ranks
  std::optional<Ruleset> read_only;
  NodeStore store;
  net::HeldPorts rank_ports;
  std::string folder_mark;
  plan::RunAddresses addresses;          // those that are known so far
  std::optional<NodeRanks> ranks;        // always, once prepared
  std::optional<NodeOutput> output;      // always, once prepared
  std::unique_ptr<DataDelivery> data;    // with --cpus
  std::unique_ptr<NodeTimers> timers;    // with TORCHELASTIC_ENABLE_FILE_TIMER
  std::optional<Timer> leftover_notice;  // while all of a generation is to end
  StopWish stop_wish{io, disk, [this](const run::SignalRanks& request) { signal(request); },
                     [this](std::string text) { remark(std::move(text)); }};
};

Node::Node(std::unique_ptr<State> state) : state_(std::move(state)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::prepare(boost::asio::io_context& io, NodeOptions options, Say say) {
  auto state = std::make_unique<State>(io, std::move(options), std::move(say));
  if (auto opened = state->open_store(); !opened) return opened.error();
  if (auto held = state->hold_ports(); !held) return held.error();
  if (auto opened = state->open_timers(); !opened) return opened.error();
  if (auto opened = state->open_folder(); !opened) return opened.error();
  if (auto opened = state->open_data(); !opened) return opened.error();
  state->open_ranks();
  state->open_output();
  return std::unique_ptr<Node>(new Node(std::move(state)));
}

Result<> Node::State::open_store() {
  NodeStore::Callbacks calls;
  calls.joined = [this](Rank rank) { outbox.say(run::RankJoined{generation(), rank, steady_now()}); };
  calls.reached = [this] { outbox.say(run::StoreReached{generation(), steady_now()}); };
  calls.remark = [this](std::string text) { remark(std::move(text)); };
  auto port = static_cast<std::uint16_t>(options.settings.options.rendezvous.master_port.value_or(0));
  return store.open(io, options.store_addresses, port, open_files_for_clients(options.most_ranks), std::move(calls));
}

/// A server of a rank is found where the store is.
Result<> Node::State::hold_ports() {
  auto ports = net::HeldPorts::hold(io, options.listen_address, options.rank_ports);
  if (!ports) return ports.error();
  rank_ports = std::move(*ports);
  return {};
}

Result<> Node::State::open_timers() {
  if (options.store_addresses.empty()) return {};
  NodeTimers::Callbacks calls;
  calls.find_rank = [this](int pid) { return ranks->rank_of(pid); };
  calls.remark = [this](std::string text) { remark(std::move(text)); };
  auto opened_timers = NodeTimers::open(io, options.machine.environment, std::move(calls));
  if (!opened_timers) return opened_timers.error();
  timers = std::move(*opened_timers);
  if (timers) addresses.timer_file = timers->path();
  return {};
}

/// What may be refused is tried before the folder is made.
Result<> Node::State::open_folder() {
  const auto& wanted = options.settings.options.output;
  if (auto possible = check_protection(wanted); !possible) return possible.error();
  auto opened = options.open_folder();
  if (!opened) return opened.error();
  folder = std::move(*opened);
  if (const auto& run = options.run_mark; !run.empty()) {
    auto mark = storage::mark_folder(folder->held(), run);
    if (!mark) return mark.error();
    folder_mark = std::move(*mark);
  }
  if (wanted.ranks == plan::RankFiles::kPrivate) {
    if (auto made = folder->make_private_files(); !made) return made.error();
  }
  auto rules = make_protection(wanted, *folder);
  if (!rules) return rules.error();
  read_only = std::move(*rules);
  return {};
}

Result<> Node::State::open_data() {
  if (!options.settings.options.data.cpus) return {};
  DataDeliveryOptions wanted;
  wanted.settings = options.settings;
  wanted.machine = options.machine;
  wanted.program = options.program;
  wanted.run_folder = folder->held();
  wanted.key = options.data_key;
  wanted.workers = options.data_workers;
  wanted.simulated_machines = options.simulated_cpu_machines;
  wanted.instance = options.instance;
  wanted.listen_address = options.listen_address;
  if (read_only) wanted.read_only = &*read_only;
  auto prepared = DataDelivery::prepare(io, family, disk, std::move(wanted),
                                        [this](run::AgentMessage message) { outbox.say(std::move(message)); });
  if (!prepared) return std::move(prepared).error().with("--cpus");
  data = std::move(*prepared);
  addresses.data_plan = data->plan_path();
  addresses.events = data->events_path();
  return {};
}

void Node::State::open_ranks() {
  NodeRanksOptions wanted;
  wanted.starts.settings = options.settings;
  wanted.starts.machine = options.machine;
  wanted.starts.command = options.program.command;
  wanted.starts.inherits_stdin = options.inherits_stdin;
  wanted.starts.read_only = read_only ? &*read_only : nullptr;
  wanted.starts.open_files_limit = open_files_limit;
  wanted.all_output = options.all_output;
  wanted.before_start = options.before_start;
  wanted.on_end = [this](Rank rank, run::Evidence& evidence) { add_evidence(rank, evidence); };
  ranks.emplace(io, family, disk, outbox, *folder, std::move(wanted));
}

void Node::State::open_output() {
  NodeOutputOptions wanted;
  wanted.hostname = options.machine.hostname;
  wanted.writers = &ranks->writers();
  wanted.send_file = options.send_file;
  wanted.ask_others = [this](std::uint64_t number) { outbox.say(run::AskWriters{generation(), number}); };
  wanted.remark = [this](std::string text) { remark(std::move(text)); };
  output.emplace(io, *folder, std::move(wanted));
}

Family& Node::family() { return state_->family; }

std::vector<std::uint16_t> Node::data_ports() const {
  return state_->data ? state_->data->ports() : std::vector<std::uint16_t>();
}

std::vector<std::uint16_t> Node::rank_ports() const { return state_->rank_ports.numbers(); }

std::uint16_t Node::store_port() const { return state_->store.port(); }

const std::string& Node::folder_mark() const { return state_->folder_mark; }

std::string Node::folder_view() const { return storage::view_of_folder(state_->folder->held()); }

std::string Node::output_directory() const { return state_->folder->files(); }

void Node::use_interface(const std::string& name) { state_->addresses.interface = name; }

void Node::perform(const run::CoordinatorMessage& message) {
  std::visit([this](const auto& asked) { state_->perform(asked); }, message);
}

void Node::link_is_new() {
  state_->outbox.begin_anew();
  state_->output->begin_anew();
}

void Node::State::perform(const run::StartRanks& start) {
  auto places = place_ranks(start.shares, start.world_size, start.nodes);
  const bool first_node = !places.empty() && places.front().rank.value == 0;
  if (start.folded.value >= 0) {
    disk.run(
        [where = *folder, places, folded = start.folded] {
          for (const auto& place : places) where.remove_rank_files(folded, place);
        },
        [] {});
  }
  if (timers) timers->begin_generation();
  if (data) data->set_world_size(start.world_size);
  serve_store(start, first_node);
  addresses.servers = start.servers;
  addresses.output_directory = folder->staging();
  addresses.stop_file = stop_file(start.generation).path();
  addresses.log_folder = folder->own_logs();
  output->take(start.output, start.generation);  // what the generation before has left is looked at first
  ranks->start(start.generation, addresses, std::move(places));
}

void Node::State::serve_store(const run::StartRanks& start, bool first_node) {
  addresses.master_addr = start.master_addr;
  addresses.master_port = start.master_port;
  addresses.agent_store = plan::launcher_serves_store(options.settings.options, options.settings.world_size);
  if (!addresses.agent_store) return store.close();  // it only found a free port for rank 0
  first_node ? store.begin_generation(start.master_addr) : store.rest();
}

void Node::State::add_evidence(Rank rank, run::Evidence& evidence) {
  if (data) data->drain();
  if (timers) evidence.expired_timer = timers->expired(rank).value_or("");
}

void Node::State::perform(const run::Settle& request) {
  ranks->release_source();  // no generation follows: its memory is given back while output is put on disk
  output->settle(request.publish, [this](const std::string& error) { say_settled(error); });
}

/// What ranks wrote apart is compared with what is published now. Log files are whole then, too.
void Node::State::say_settled(const std::string& error) {
  auto told = std::make_shared<std::vector<std::string>>();
  disk.run(
      [told, where = *folder, keeps = options.settings.options.output.ranks] {
        if (keeps == plan::RankFiles::kPrivate)
          *told = private_remarks(storage::sort_private_files(where), where.private_files());
      },
      [=, files = output->published(), this] {
        for (auto& line : *told) remark(std::move(line));
        outbox.say_last(run::OutputSettled{error, steady_now(), files});
      });
}

void Node::State::hold_output(bool hold) {
  if (ranks) ranks->hold_output(hold);
}

/// Files that ranks have open when the signal comes are perhaps closed because of it, half written; those that they
/// begin then are begun on purpose. So they stand still while the two are told apart.
void Node::State::signal(const run::SignalRanks& request) {
  if (!request.to_end || request.generation != generation()) return ranks->signal(request);
  if (!output->has_seen_files()) {
    output->stopping(false, {});  // whatever they write from now on is begun on purpose
    return ranks->signal(request);
  }
  std::optional<Standstill> standstill;
  ranks->signal(request, [&] {
    const auto processes = family.members();
    standstill.emplace(processes);
    output->stopping(false, processes);
  });
}

void Node::State::sweep(int signal) {
  log::info(LogPart::kProcess, "all of generation {} is to end, by signal {}", generation().value, signal);
  ranks->cancel_start();
  if (signal != SIGKILL) {
    const Duration limit = options.settings.options.supervision.leftover_timeout;
    const bool in_peace = signal == 0;
    leftover_notice.emplace(io, [=, this] { name_leftovers(in_peace); });
    leftover_notice->set(steady_now() + (in_peace ? std::min(kLeftoverNotice, limit / 2) : kLeftoverNotice));
  }
  if (signal != 0) {
    output->stopping(signal == SIGKILL, output->has_seen_files() ? family.members() : std::vector<Process>());
  }
  family.sweep(signal, [this, swept = generation()] {
    leftover_notice.reset();
    ranks->flush();
    store.rest();
    disk.after([=, this] { outbox.say(run::GenerationGone{swept, steady_now()}); });  // and so after the ranks' ends
  });
}

/// Those below them end with them, or are named by the next line.
void Node::State::name_leftovers(bool in_peace) {
  std::vector<std::string> names;
  for (const auto& process : family.members()) {
    if (process.parent == ::getpid()) names.push_back(describe(process));
  }
  if (names.empty()) return;
  const auto count = names.size();
  if (count > kMostNamed) names.resize(kMostNamed);
  auto who = fmt::format("{}{}", fmt::join(names, ", "),
                         count > kMostNamed ? fmt::format(" and {} more", count - kMostNamed) : "");
  const auto& limits = options.settings.options.supervision;
  const auto* left = count == 1 ? "a process" : "processes";
  if (in_peace) {
    return remark(
        fmt::format("waiting for {} that ranks left behind: {}; for {} s at most (--leftover-timeout), and "
                    "SIGTERM or Ctrl-C ends the wait",
                    left, who, seconds(limits.leftover_timeout)));
  }
  remark(
      fmt::format("ranks have ended, and left behind {} that {} not: {}; SIGKILL follows at the end of "
                  "--shutdown-timeout",
                  left, count == 1 ? "has" : "have", who));
}

void Node::State::perform(const run::RequestStop& request) {
  stop_wish.tell(stop_file(generation()));
  if (request.signal == 0) return ranks->hurry();  // the user stops the run: no rank waits for an import first
  run::SignalRanks to_all{generation(), {}, request.signal, false, request.sent};
  for (const auto& place : ranks->places()) to_all.ranks.push_back(place.rank);
  stop_wish.pass(to_all);
}

void Node::State::perform(const run::LookAtWriters& request) {
  const bool well = request.generation == generation() && !ranks->told_to_end() &&
                    ranks->writers().look(steady_now()) == storage::WritersState::kWell;
  outbox.say(run::WritersSeen{request.number, well});
}

void Node::State::perform(const run::DataWorkers& list) {
  if (data) data->use(list);
}

}  // namespace taas::node
