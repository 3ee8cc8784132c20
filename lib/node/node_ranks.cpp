#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <csignal>
#include <optional>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/log/log.hpp"
#include "node/node_state.hpp"
#include "node/process/common_environment.hpp"
#include "plan/launch_mode/rendezvous.hpp"
#include "plan/program/preload.hpp"
#include "plan/streams.hpp"
#include "proc/machine/memory_watch.hpp"

namespace taas::node {
namespace {

/// A log folder that cannot be made leaves the rank without a file, not the run without the rank.
std::string path_or_none(Result<std::string> path) { return path ? std::move(*path) : std::string(); }

std::optional<std::string> read_source(const std::string& path) {
  auto text = read_regular_file(path, plan::kMostOfSource);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

/// torchrun's one macro in the program's arguments.
std::vector<std::string> fill_in_local_rank(std::vector<std::string> command, int local_rank) {
  for (auto& word : command) boost::algorithm::replace_all(word, "${local_rank}", std::to_string(local_rank));
  return command;
}

/// On the disk thread.
GenerationPaths make_paths(const storage::RunDirectory& folder, Generation generation,
                           const std::vector<RankPlace>& places) {
  GenerationPaths made;
  made.flight_records = path_or_none(folder.flight_records(generation));
  for (const auto& place : places) {
    made.ranks.push_back({path_or_none(folder.rank_log(generation, place, storage::LogStream::kStdout)),
                          path_or_none(folder.rank_log(generation, place, storage::LogStream::kStderr)),
                          path_or_none(folder.error_file(generation, place))});
  }
  return made;
}

}  // namespace

void Node::State::perform(const run::StartRanks& start) {
  generation = start.generation;
  ranks.clear();
  writers.clear();
  places = place_ranks(start.shares, start.world_size, start.nodes);
  choose_streams(places);
  out_of_memory_kills = oom_kills();
  if (timers) timers->begin_generation();
  bool store_here = plan::launcher_serves_store(options.settings.options, options.settings.world_size);
  addresses.master_addr = start.master_addr;
  addresses.master_port = start.master_port;
  addresses.servers = start.servers;
  addresses.agent_store = store_here;
  addresses.output_directory = folder().staging();
  addresses.stop_file = stop_file();
  addresses.log_folder = folder().own_logs();
  if (data) data->set_world_size(start.world_size);
  if (!store_here) store.reset();  // it only found a free port for rank 0
  bool first_node = !places.empty() && places.front().rank.value == 0;
  if (store) first_node ? store->begin_generation(served_address()) : store->rest();
  output->take(start.output);
  start_wanted = true;
  auto made = std::make_shared<GenerationPaths>();
  disk.run([=, where = folder(), of = generation, all = places] { *made = make_paths(where, of, all); },
           [=, this] { use(std::move(*made)); });
}

void Node::State::use(GenerationPaths made) {
  if (!start_wanted) return;
  addresses.flight_records = std::move(made.flight_records);
  paths = std::move(made.ranks);
  if (!source && read_only) tell_gap_of_protection();
  if (!source) source = make_source();
  source->prepare([this] { return common(); },
                  [this] {
                    if (options.before_start) options.before_start();
                    if (start_wanted) start_all();
                  });
}

/// On several machines the one by which all nodes reach this one.
std::string Node::State::served_address() const {
  const auto& all = options.store_addresses;
  bool chosen = std::find(all.begin(), all.end(), addresses.master_addr) != all.end();
  return chosen && all.size() > 1 ? addresses.master_addr : std::string();
}

/// As far as descriptors go; then all together, since a preloaded interpreter forks many for little more than one.
void Node::State::start_all() {
  starting.clear();
  short_of.reset();
  for (std::size_t i = 0; i < places.size(); ++i) {
    auto one = PreparedRank::make(describe(places[i], paths[i]));
    if (!one) short_of = one.error();
    if (!one) break;
    starting.push_back(std::move(*one));
  }
  if (starting.empty() && short_of) say_failed(places.front(), *short_of);
  if (starting.empty()) return;
  std::vector<SpawnRequest> requests;
  for (const auto& one : starting) requests.push_back(one.request());
  source->spawn(requests, [this](std::size_t i, Result<Child> child) { take(i, std::move(child)); });
}

void Node::State::take(std::size_t index, Result<Child> child) {
  if (!child) return say_failed(places[index], child.error());
  adopt(places[index], std::move(starting[index]), std::move(*child));
  const bool last = index + 1 == starting.size();
  if (last && short_of) say_failed(places[index + 1], *short_of);
}

void Node::State::say_failed(const RankPlace& place, const Error& error) {
  log::warning(LogPart::kProcess, "rank {} cannot be started: {}", place.rank.value, error.message);
  outbox.say(run::RankSpawnFailed{generation, place.rank, error.system_errno, error.message, steady_now()});
}

void Node::State::adopt(const RankPlace& place, PreparedRank prepared, Child child) {
  auto process = RankProcess::adopt(io, family, disk, std::move(prepared), std::move(child), callbacks(place.rank));
  log::info(LogPart::kProcess, "rank {} of generation {} is process {}{}", place.rank.value, generation.value,
            process->pid(), process->preloaded() ? ", preloaded" : "");
  outbox.say(run::RankSpawned{generation, place.rank, process->pid(), steady_now(), process->preloaded()});
  writers.add(process->pid());
  if (held && is_shown(ranks.size())) process->pause();
  ranks.push_back(std::move(process));
}

std::unique_ptr<RankSource> Node::State::make_source() {
  RankSourceOptions wanted;
  wanted.choice = plan::choose_preload(options.settings.options, options.program.command,
                                       static_cast<int>(places.size()), read_source);
  wanted.command = options.program.command;
  wanted.hook_folder = options.machine.preload_hook;
  wanted.open_files_limit = open_files_limit;
  return std::make_unique<RankSource>(io, family, std::move(wanted),
                                      [this](std::string why) { remark(std::move(why)); });
}

CommonEnvironment Node::State::common() const {
  std::vector<std::vector<std::string>> environments;
  std::vector<std::string> names;
  for (const auto& place : places) {
    environments.push_back(environment_of(place, ""));
    auto set = plan::rank_environment(options.settings, options.machine, place, generation, addresses);
    for (auto& [name, value] : set) names.push_back(std::move(name));
  }
  return common_environment(environments, names);
}

void Node::State::choose_streams(const std::vector<RankPlace>& wanted) {
  auto chosen = plan::decide_streams(options.settings.options.output, wanted);
  outputs = chosen ? std::move(*chosen) : std::vector<plan::RankOutput>(wanted.size());
}

RankStart Node::State::describe(const RankPlace& place, const RankPaths& files) {
  RankStart start;
  start.rank = place.rank;
  start.argv = fill_in_local_rank(options.program.command, place.local_rank);
  start.stdout_path = files.out;
  start.stderr_path = files.err;
  start.error_file = files.error;
  if (const auto& records = addresses.flight_records; !records.empty()) {
    start.flight_record = records + std::to_string(place.rank.value);
  }
  start.environment = environment_of(place, start.error_file);
  if (place.rank.value != 0 && read_only) start.read_only = &*read_only;
  start.open_files_limit = open_files_limit;
  start.inherits_stdin = place.rank.value == 0 && options.inherits_stdin;
  return start;
}

std::vector<std::string> Node::State::environment_of(const RankPlace& place, const std::string& error) const {
  plan::RunAddresses known = addresses;
  known.error_file = error;
  const auto& settings = options.settings;
  auto variables = options.machine.environment;
  for (auto& [name, value] : plan::rank_environment(settings, options.machine, place, generation, known)) {
    variables.insert_or_assign(name, value);
  }
  return assignments(variables);
}

RankCallbacks Node::State::callbacks(Rank rank) {
  RankCallbacks calls;
  calls.on_line = [this, index = ranks.size()](const ui::OutputLine& line) { show(index, line); };
  calls.on_log_error = [this](const Error& error) {
    remark(error.message + "; training goes on, and the file when it can be written again");
  };
  calls.on_exit = [this, rank, of = generation](ExitStatus status, run::Evidence evidence, Instant at) {
    log::info(LogPart::kProcess, "rank {} of generation {} has ended: code {}, signal {}", rank.value, of.value,
              status.code, status.signal);
    writers.one_ended();
    if (data) data->drain();
    evidence.out_of_memory_kill = status.signal == SIGKILL && out_of_memory_struck();
    if (timers) evidence.expired_timer = timers->expired(rank).value_or("");
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
  if (shown || (options.all_output && !held)) {
    outbox.add({line.rank, is_stderr, line.progress, line.text, line.at, line.open, line.raw});
  }
  bool refused = line.text.find("ermission denied") != std::string::npos;
  if (refused && read_only && line.rank.value != 0 && !refusal_explained) explain_refusal(line.rank);
}

void Node::State::explain_refusal(Rank rank) {
  refusal_explained = true;
  remark(fmt::format("rank {} was refused a write: --protect makes {} read-only for ranks other than 0", rank.value,
                     fmt::join(options.settings.options.output.protected_directories, ", ")));
}

void Node::State::tell_gap_of_protection() {
  auto gap = landlock_gap(landlock_version());
  if (!gap.empty()) remark("--protect: " + gap);
}

}  // namespace taas::node
