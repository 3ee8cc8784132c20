#include "node/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/log/log.hpp"
#include "node/node_state.hpp"
#include "storage/folder_marker.hpp"

namespace taas::node {
namespace {

Result<std::optional<Ruleset>> protect(const plan::OutputOptions& output) {
  if (output.protected_directories.empty()) return std::nullopt;
  auto rules = make_read_only(output.protected_directories, output.unprotected);
  if (!rules) return rules.error();
  return std::optional<Ruleset>(std::move(*rules));
}

}  // namespace

Node::Node(std::unique_ptr<State> state) : state_(std::move(state)) {}
Node::~Node() = default;

Result<std::unique_ptr<Node>> Node::prepare(boost::asio::io_context& io, NodeOptions options, Say say) {
  auto state = std::make_unique<State>(io, std::move(options), std::move(say));
  if (auto opened = state->open_store(); !opened) return opened.error();
  if (auto held = state->hold_ports(); !held) return held.error();
  if (auto opened = state->open_timers(); !opened) return opened.error();
  const auto& output = state->options.settings.options.output;
  if (auto possible = protect(output); !possible) return possible.error();
  auto folder = state->options.open_folder();
  if (!folder) return folder.error();
  state->opened = std::move(*folder);
  state->open_output();
  if (const auto& run = state->options.run_mark; !run.empty()) {
    auto mark = storage::mark_folder(state->folder().path(), run);
    if (!mark) return mark.error();
    state->folder_mark = std::move(*mark);
  }
  auto read_only = protect(output);  // again: rules allow what is there when they are made, so the run's folder as well
  if (!read_only) return read_only.error();
  state->read_only = std::move(*read_only);
  if (auto opened = state->open_data(); !opened) return opened.error();
  return std::unique_ptr<Node>(new Node(std::move(state)));
}

/// Until its generation begins it only says that this machine can be reached.
Result<> Node::State::open_store() {
  if (options.store_addresses.empty()) return {};
  store::ServerOptions listen;
  listen.addresses = options.store_addresses;
  listen.port = static_cast<std::uint16_t>(options.settings.options.rendezvous.master_port.value_or(0));
  store::Observer observer;
  observer.on_joined = [this](Rank rank) { outbox.say(run::RankJoined{generation, rank, steady_now()}); };
  observer.on_reached = [this] { outbox.say(run::StoreReached{generation, steady_now()}); };
  observer.on_refused = [this](const Error& why) { tell_limit_of_store(why); };
  auto listening = store::Server::listen(io, listen, std::move(observer));
  if (!listening) return listening.error();
  store = std::move(*listening);
  store->rest();
  store_port = store->port();
  return {};
}

/// Who leaves the protocol is a stranger. For whom there is no room may be a rank, which is told nothing but that its
/// connection is closed.
void Node::State::tell_limit_of_store(const Error& why) {
  if (why.code != ErrorCode::kUnavailable || std::exchange(limit_told, true)) return;
  remark(fmt::format(
      "the store closed the connection of a client: {}; --store rank0 has torch's own store, without limits",
      why.message));
}

Result<> Node::State::open_data() {
  if (!options.settings.options.data.cpus) return {};
  DataDeliveryOptions wanted;
  wanted.settings = options.settings;
  wanted.machine = options.machine;
  wanted.program = options.program;
  wanted.run_folder = folder().path();
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

Result<> Node::State::open_timers() {
  if (options.store_addresses.empty()) return {};
  NodeTimers::Callbacks calls;
  calls.find_rank = [this](int pid) { return rank_of(pid); };
  calls.remark = [this](std::string text) { remark(std::move(text)); };
  auto opened_timers = NodeTimers::open(io, options.machine.environment, std::move(calls));
  if (!opened_timers) return opened_timers.error();
  timers = std::move(*opened_timers);
  if (timers) addresses.timer_file = timers->path();
  return {};
}

std::optional<Rank> Node::State::rank_of(int pid) const {
  auto found = std::find_if(ranks.begin(), ranks.end(), [pid](const auto& rank) { return rank->pid() == pid; });
  return found == ranks.end() ? std::nullopt
                              : std::optional(places[static_cast<std::size_t>(found - ranks.begin())].rank);
}

void Node::State::open_output() {
  NodeOutputOptions wanted;
  wanted.hostname = options.machine.hostname;
  wanted.writers_alive = [this] { return writers.all_alive(); };
  wanted.send_file = options.send_file;
  wanted.remark = [this](std::string text) { remark(std::move(text)); };
  output.emplace(io, *opened, std::move(wanted));
}

/// A server of a rank is found where the store is.
Result<> Node::State::hold_ports() {
  auto ports = net::HeldPorts::hold(io, options.listen_address, options.rank_ports);
  if (!ports) return ports.error();
  rank_ports = std::move(*ports);
  return {};
}

Family& Node::family() { return state_->family; }

std::vector<std::uint16_t> Node::data_ports() const {
  return state_->data ? state_->data->ports() : std::vector<std::uint16_t>();
}

std::vector<std::uint16_t> Node::rank_ports() const { return state_->rank_ports.numbers(); }

std::uint16_t Node::store_port() const { return state_->store_port; }

const std::string& Node::folder_mark() const { return state_->folder_mark; }

std::string Node::output_directory() const { return state_->folder().files(); }

void Node::use_interface(const std::string& name) { state_->addresses.interface = name; }

void Node::perform(const run::CoordinatorMessage& message) {
  std::visit([this](const auto& asked) { state_->perform(asked); }, message);
}

void Node::link_is_new() {
  state_->outbox.begin_anew();
  state_->output->begin_anew();
}

void Node::State::perform(const run::Settle& request) {
  source.reset();  // no generation follows: its memory is given back while output is put on disk
  output->settle(request.publish, [this](const std::string& error) { say_settled(error); });
}

void Node::State::say_settled(const std::string& error) {
  // Log files are whole then, too.
  disk.after([=, files = output->published(), this] {
    outbox.say_last(run::OutputSettled{error, steady_now(), files});
  });
}

void Node::State::hold_output(bool hold) {
  held = hold;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!is_shown(i)) continue;
    held ? ranks[i]->pause() : ranks[i]->resume();
  }
}

void Node::State::signal(const run::SignalRanks& request) {
  if (request.generation != generation) return;
  for (Rank rank : request.ranks) {
    auto index = static_cast<std::size_t>(
        std::find_if(places.begin(), places.end(), [&](const auto& place) { return place.rank == rank; }) -
        places.begin());
    if (index >= ranks.size() || !ranks[index]->running()) continue;
    log::debug(LogPart::kProcess, "signal {} goes to rank {}", request.signal, rank.value);
    ranks[index]->signal(request.signal);
  }
}

void Node::State::sweep(int signal) {
  log::info(LogPart::kProcess, "all of generation {} is to end, by signal {}", generation.value, signal);
  start_wanted = false;
  if (source) source->forget();
  starting.clear();
  family.sweep(signal, [this, swept = generation] {
    for (auto& rank : ranks) rank->flush();
    if (store) store->rest();
    disk.after([=, this] { outbox.say(run::GenerationGone{swept, steady_now()}); });  // and so after the ranks' ends
  });
}

void Node::State::perform(const run::RequestStop& request) {
  stop_wish.tell(stop_file());
  if (request.signal == 0 && source) source->hurry();  // the user stops the run: no rank waits for an import first
  if (request.signal == 0) return;
  run::SignalRanks to_all{generation, {}, request.signal};
  for (const auto& place : places) to_all.ranks.push_back(place.rank);
  stop_wish.pass(to_all);
}

void Node::State::perform(const run::DataWorkers& list) {
  if (data) data->use(list);
}

}  // namespace taas::node
