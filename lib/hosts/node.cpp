#include "hosts/node.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <optional>

#include "base/fd.hpp"
#include "hosts/outbox.hpp"
#include "hosts/rank_process.hpp"
#include "plan/streams.hpp"
#include "proc/family.hpp"
#include "proc/landlock.hpp"
#include "proc/memory_watch.hpp"
#include "proc/open_files.hpp"
#include "storage/liveness.hpp"
#include "storage/publisher.hpp"
#include "store/server.hpp"

namespace taas::hosts {
namespace {

constexpr auto kWatchAfter = std::chrono::milliseconds(100);  // no rank has written anything sooner

/// A log folder that cannot be made leaves the rank without a file, not the run without the rank.
std::string path_or_none(Result<std::string> path) { return path ? std::move(*path) : std::string(); }

/// torchrun's one macro in the program's arguments.
std::vector<std::string> fill_in_local_rank(std::vector<std::string> command, int local_rank) {
  for (auto& word : command) boost::algorithm::replace_all(word, "${local_rank}", std::to_string(local_rank));
  return command;
}

Result<std::optional<Ruleset>> protect(const std::vector<std::string>& directories) {
  if (directories.empty()) return std::nullopt;
  auto rules = make_read_only(directories);
  if (!rules) return rules.error();
  return std::optional<Ruleset>(std::move(*rules));
}

std::vector<plan::RankPlace> places_of(const run::StartRanks& start) {
  std::vector<plan::RankPlace> places;
  for (const auto& share : start.shares) {
    for (int local = 0; local < share.local_world_size; ++local) {
      places.push_back({Rank{share.first_rank.value + local}, start.world_size, local, share.local_world_size,
                        share.node, start.nodes});
    }
  }
  return places;
}

}  // namespace

struct Node::State {
  State(boost::asio::io_context& loop, NodeOptions given, Say say)
      : io(loop),
        options(std::move(given)),
        outbox(loop, std::move(say)),
        family(loop),
        open_files_limit(raise_open_files_limit()) {}

  Result<> open_store();

  template <class Message>
  void perform(const Message&) {}
  void perform(const run::StartRanks& start);
  void perform(const run::SignalRanks& request);
  void perform(const run::KillGeneration&) { sweep(SIGKILL); }
  void perform(const run::SweepGeneration& request) { sweep(request.signal); }
  void perform(const run::HoldOutput& request);
  void perform(const run::RequestStop& request);
  void perform(const run::Settle& request);
  void perform(const run::Abandon&);

  bool start_rank(const plan::RankPlace& place);
  RankStart describe(const plan::RankPlace& place);
  RankCallbacks callbacks(Rank rank);
  [[nodiscard]] std::vector<std::string> environment_of(const plan::RankPlace& place, const std::string& error) const;
  void choose_streams(const std::vector<plan::RankPlace>& places);
  void watch_output();
  void sweep(int signal);
  void show(std::size_t index, const ui::OutputLine& line);
  void explain_refusal(Rank rank);
  [[nodiscard]] bool out_of_memory_struck() const;
  [[nodiscard]] bool writers_alive() const;
  [[nodiscard]] bool is_shown(std::size_t index) const;
  void remark(std::string text) { outbox.say(run::Remark{std::move(text)}); }
  [[nodiscard]] const storage::RunDirectory& folder() const { return *opened; }
  [[nodiscard]] std::string stop_file() const { return folder().path() + "/stop-requested"; }

  boost::asio::io_context& io;
  NodeOptions options;
  std::optional<storage::RunDirectory> opened;  // always, once prepared
  Outbox outbox;
  Family family;
  std::optional<std::uint64_t> open_files_limit;  // the user's, given back to ranks
  std::optional<Ruleset> read_only;
  std::unique_ptr<store::Server> store;
  std::uint16_t store_port = 0;
  std::unique_ptr<storage::Publisher> publisher;  // on the node of rank 0

  Generation generation{-1};
  plan::RunAddresses addresses;
  std::vector<plan::RankPlace> places;              // of this node's ranks, in order
  std::vector<plan::RankOutput> outputs;            // which of their streams the console shows
  std::vector<std::unique_ptr<RankProcess>> ranks;  // started ones, in the same order
  std::optional<long> out_of_memory_kills;          // when the generation began
  bool held = false;
  bool refusal_explained = false;
};

Node::Node(std::unique_ptr<State> state) : state_(std::move(state)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::prepare(boost::asio::io_context& io, NodeOptions options, Say say) {
  auto state = std::make_unique<State>(io, std::move(options), std::move(say));
  if (auto opened = state->open_store(); !opened) return opened.error();
  auto read_only = protect(state->options.settings.options.output.protected_directories);
  if (!read_only) return read_only.error();
  state->read_only = std::move(*read_only);
  auto folder = state->options.open_folder();
  if (!folder) return folder.error();
  state->opened = std::move(*folder);
  return std::unique_ptr<Node>(new Node(std::move(state)));
}

Result<> Node::State::open_store() {
  store::ServerOptions listen;
  listen.address = options.store_address;
  listen.port = static_cast<std::uint16_t>(options.settings.options.rendezvous.master_port.value_or(0));
  store::Observer observer;
  observer.on_joined = [this](Rank rank) { outbox.say(run::RankJoined{generation, rank, steady_now()}); };
  auto listening = store::Server::listen(io, listen, std::move(observer));
  if (!listening) return listening.error();
  store = std::move(*listening);
  store_port = store->port();
  return {};
}

std::uint16_t Node::store_port() const { return state_->store_port; }

std::string Node::output_directory() const { return state_->folder().files(); }

void Node::use_interface(const std::string& name) { state_->addresses.interface = name; }

void Node::perform(const run::CoordinatorMessage& message) {
  std::visit([this](const auto& asked) { state_->perform(asked); }, message);
}

void Node::State::perform(const run::StartRanks& start) {
  generation = start.generation;
  ranks.clear();
  places = places_of(start);
  choose_streams(places);
  out_of_memory_kills = oom_kills();
  bool store_here = !options.settings.options.rendezvous.store_on_rank0;
  addresses.master_addr = start.master_addr;
  addresses.master_port = start.master_port;
  addresses.agent_store = store_here;
  addresses.output_directory = folder().staging();
  addresses.stop_file = stop_file();
  if (!store_here) store.reset();  // it only found a free port for rank 0
  if (store) store->begin_generation();
  bool first_node = !places.empty() && places.front().rank.value == 0;
  if (first_node && !publisher) watch_output();
  for (const auto& place : places) {
    if (!start_rank(place)) return;
  }
}

void Node::State::choose_streams(const std::vector<plan::RankPlace>& wanted) {
  std::vector<plan::RankPlan> plans;
  for (const auto& place : wanted) plans.push_back({place.rank, place.local_rank, place.node});
  auto chosen = plan::decide_streams(options.settings.options.output, plans);
  outputs = chosen ? std::move(*chosen) : std::vector<plan::RankOutput>(wanted.size());
}

void Node::State::watch_output() {
  storage::PublisherOptions publishing;
  publishing.staging = folder().staging();
  publishing.files = folder().files();
  publishing.writers_alive = [this] { return writers_alive(); };
  publishing.watch_after = kWatchAfter;
  publishing.on_error = [this](const Error& error) { remark(error.message); };
  publisher = storage::Publisher::start(io, std::move(publishing));
}

bool Node::State::start_rank(const plan::RankPlace& place) {
  auto process = RankProcess::start(io, family, describe(place), callbacks(place.rank));
  if (!process) {
    const Error& error = process.error();
    outbox.say(run::RankSpawnFailed{generation, place.rank, error.system_errno, error.message, steady_now()});
    return false;
  }
  outbox.say(run::RankSpawned{generation, place.rank, (*process)->pid(), steady_now()});
  if (held && is_shown(ranks.size())) (*process)->pause();
  ranks.push_back(std::move(*process));
  return true;
}

RankStart Node::State::describe(const plan::RankPlace& place) {
  storage::RankPlace where{place.rank, place.node, place.local_rank};
  RankStart start;
  start.rank = place.rank;
  start.argv = fill_in_local_rank(options.command, place.local_rank);
  start.stdout_path = path_or_none(folder().rank_log(generation, where, storage::LogStream::kStdout));
  start.stderr_path = path_or_none(folder().rank_log(generation, where, storage::LogStream::kStderr));
  start.error_file = path_or_none(folder().error_file(generation, where));
  start.environment = environment_of(place, start.error_file);
  if (place.rank.value != 0 && read_only) start.read_only = &*read_only;
  start.open_files_limit = open_files_limit;
  start.inherits_stdin = place.rank.value == 0 && options.inherits_stdin;
  return start;
}

std::vector<std::string> Node::State::environment_of(const plan::RankPlace& place, const std::string& error) const {
  plan::RunAddresses known = addresses;
  known.error_file = error;
  const auto& settings = options.settings;
  auto variables = options.machine.environment;
  for (auto& [name, value] : plan::rank_environment(settings, options.machine, place, generation, known)) {
    variables.insert_or_assign(name, value);
  }
  std::vector<std::string> list;
  list.reserve(variables.size());
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

RankCallbacks Node::State::callbacks(Rank rank) {
  RankCallbacks calls;
  calls.on_line = [this, index = ranks.size()](const ui::OutputLine& line) { show(index, line); };
  calls.on_log_error = [this](const Error& error) { remark(error.message + "; training goes on without that file"); };
  calls.on_exit = [this, rank, of = generation](ExitStatus status, run::Evidence evidence, Instant at) {
    evidence.out_of_memory_kill = status.signal == SIGKILL && out_of_memory_struck();
    outbox.say(run::RankExited{of, rank, status, std::move(evidence), at});
  };
  return calls;
}

bool Node::State::out_of_memory_struck() const {
  auto now = oom_kills();
  return now && out_of_memory_kills && *now > *out_of_memory_kills;
}

bool Node::State::is_shown(std::size_t index) const {
  return outputs[index].stdout_on_console || outputs[index].stderr_on_console;
}

void Node::State::show(std::size_t index, const ui::OutputLine& line) {
  bool is_stderr = line.stream == ui::Stream::kStderr;
  bool shown = is_stderr ? outputs[index].stderr_on_console : outputs[index].stdout_on_console;
  if (shown || options.all_output) outbox.add({line.rank, is_stderr, line.progress, line.text, line.at});
  bool refused = line.text.find("ermission denied") != std::string::npos;
  if (refused && read_only && line.rank.value != 0 && !refusal_explained) explain_refusal(line.rank);
}

void Node::State::explain_refusal(Rank rank) {
  refusal_explained = true;
  remark(fmt::format("rank {} was refused a write: --protect makes {} read-only for ranks other than 0", rank.value,
                     fmt::join(options.settings.options.output.protected_directories, ", ")));
}

void Node::State::perform(const run::HoldOutput& request) {
  held = request.hold;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!is_shown(i)) continue;
    held ? ranks[i]->pause() : ranks[i]->resume();
  }
}

void Node::State::perform(const run::SignalRanks& request) {
  if (request.generation != generation) return;
  for (Rank rank : request.ranks) {
    auto index = static_cast<std::size_t>(
        std::find_if(places.begin(), places.end(), [&](const auto& place) { return place.rank == rank; }) -
        places.begin());
    if (index < ranks.size() && ranks[index]->running()) ranks[index]->signal(request.signal);
  }
}

void Node::State::sweep(int signal) {
  family.sweep(signal, [this, swept = generation] {
    for (auto& rank : ranks) rank->flush();
    outbox.say(run::GenerationGone{swept, steady_now()});
  });
}

/// Programs that poll find the file; those that handle the signal get it.
void Node::State::perform(const run::RequestStop& request) {
  Fd made(::open(stop_file().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!made) remark(system_error("cannot tell ranks to write a checkpoint by " + stop_file(), errno).message);
  for (auto& rank : ranks) {
    if (request.signal != 0 && rank->running()) rank->signal(request.signal);
  }
}

/// Files whose writer died stay unpublished; the next generation may write them again.
void Node::State::perform(const run::Abandon& /*unused*/) {
  if (publisher) publisher->abandon([](const std::vector<std::string>&) {});
}

void Node::State::perform(const run::Settle& request) {
  auto settled = [this](const std::string& error) {
    auto files = static_cast<int>(publisher ? publisher->published() : 0);
    outbox.say(run::OutputSettled{error, steady_now(), files});
  };
  if (!publisher) return settled("");
  if (request.publish) return publisher->settle(settled);
  publisher->abandon([this, settled](const std::vector<std::string>& unpublished) {
    if (!unpublished.empty()) {
      remark(fmt::format("not published, since their writer did not end well: {}", fmt::join(unpublished, ", ")));
    }
    settled("");
  });
}

/// What a rank still writes as it dies may be half a file: then nothing is published until the run has ended well.
bool Node::State::writers_alive() const {
  return std::all_of(ranks.begin(), ranks.end(),
                     [](const auto& rank) { return rank->running() && storage::process_is_alive(rank->pid()); });
}

}  // namespace taas::hosts
