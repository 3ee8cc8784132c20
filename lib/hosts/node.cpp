#include "hosts/node.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/fd.hpp"
#include "hosts/node_state.hpp"

namespace taas::hosts {
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
  auto read_only = protect(state->options.settings.options.output);
  if (!read_only) return read_only.error();
  state->read_only = std::move(*read_only);
  auto folder = state->options.open_folder();
  if (!folder) return folder.error();
  state->opened = std::move(*folder);
  if (auto opened = state->open_data(); !opened) return opened.error();
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

Result<> Node::State::open_data() {
  if (!options.settings.options.data.cpus) return {};
  DataDeliveryOptions delivery;
  delivery.settings = options.settings;
  delivery.machine = options.machine;
  delivery.program = options.program;
  delivery.run_folder = folder().path();
  delivery.key = options.data_key;
  delivery.workers = options.data_workers;
  delivery.simulated_machines = options.simulated_cpu_machines;
  delivery.instance = options.instance;
  delivery.listen_address = options.store_address;
  auto prepared = DataDelivery::prepare(io, family, std::move(delivery),
                                        [this](run::AgentMessage message) { outbox.say(std::move(message)); });
  if (!prepared) return std::move(prepared).error().with("--cpus");
  data = std::move(*prepared);
  addresses.data_plan = data->plan_path();
  addresses.events = data->events_path();
  return {};
}

/// A server of a rank is found where the store is.
Result<> Node::State::hold_ports() {
  auto ports = net::HeldPorts::hold(io, options.store_address, options.rank_ports);
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

std::string Node::output_directory() const { return state_->folder().files(); }

void Node::use_interface(const std::string& name) { state_->addresses.interface = name; }

void Node::perform(const run::CoordinatorMessage& message) {
  std::visit([this](const auto& asked) { state_->perform(asked); }, message);
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
  if (source) source->forget();
  starting.clear();
  family.sweep(signal, [this, swept = generation] {
    for (auto& rank : ranks) rank->flush();
    outbox.say(run::GenerationGone{swept, steady_now()});
  });
}

/// Programs that poll find the file; those that handle the signal get it.
void Node::State::perform(const run::RequestStop& request) {
  Fd made(::open(stop_file().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!made) remark(system_error("cannot tell ranks to write a checkpoint by " + stop_file(), errno).message);
  if (request.signal == 0 && source) source->hurry();  // the user stops the run: no rank waits for an import first
  for (auto& rank : ranks) {
    if (request.signal != 0 && rank->running()) rank->signal(request.signal);
  }
}

void Node::State::perform(const run::DataWorkers& list) {
  if (data) data->use(list);
}

/// Files whose writer died stay unpublished; the next generation may write them again.
void Node::State::perform(const run::Abandon& /*unused*/) {
  if (publisher) publisher->abandon([](const std::vector<std::string>&) {});
}

void Node::State::perform(const run::Settle& request) {
  source.reset();  // no generation follows: its memory is given back while output is put on disk
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

}  // namespace taas::hosts
