#include "node/ranks/node_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/disk_thread.hpp"
#include "base/log/log.hpp"
#include "node/ranks/protection.hpp"
#include "plan/environment/rank_environment.hpp"
#include "plan/program/preload.hpp"
#include "proc/family/family.hpp"
#include "proc/machine/memory_watch.hpp"
#include "proc/spawn/landlock.hpp"

namespace taas::node {
namespace {

constexpr const char* kTraceback = "Traceback (most recent call last)";  // Python's own words

/// Variables by which OpenMP, when it is loaded, binds threads to processors of the process that it is loaded in. One
/// that is set where ranks are bound; null: none.
const char* deals_out_processors(const RankStartsOptions& starts) {
  if (starts.settings.options.program.numa_binding == NumaBinding::kNone) return nullptr;
  for (const auto* name : {"GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND"}) {
    if (starts.machine.environment.contains(name)) return name;
  }
  return nullptr;
}

}  // namespace

NodeRanks::NodeRanks(boost::asio::io_context& io, Family& family, DiskThread& disk, Outbox& outbox,
                     const storage::RunDirectory& folder, NodeRanksOptions options)
    : io_(io),
      family_(family),
      disk_(disk),
      outbox_(outbox),
      folder_(folder),
      options_(std::move(options)),
      starts_(std::move(options_.starts)) {}

void NodeRanks::start(Generation generation, plan::RunAddresses addresses, std::vector<RankPlace> places) {
  generation_ = generation;
  ranks_.clear();
  writers_.clear();
  told_to_end_by_ = 0;
  auto begun = starts_.begin(generation, std::move(addresses), std::move(places));
  if (!begun) return say_failed(starts_.places().front(), begun.error());
  choose_streams();
  out_of_memory_kills_ = oom_kills();
  start_wanted_ = true;
  auto made = std::make_shared<GenerationPaths>();
  const auto rank_files = starts_.options().settings.options.output.ranks;
  disk_.run([=, where = folder_, all = starts_.places()] { *made = make_paths(where, generation, all, rank_files); },
            [=, this] { use(std::move(*made)); });
}

void NodeRanks::use(GenerationPaths made) {
  if (!start_wanted_) return;
  if (!made.trouble.empty()) remark(made.trouble + "; training goes on without files there");
  starts_.use(std::move(made));
  if (!source_) {
    tell_gap_of_protection();
    source_ = make_source();
  }
  source_->prepare([this] { return starts_.common(); },
                   [this] {
                     if (options_.before_start) options_.before_start();
                     if (start_wanted_) start_all();
                   });
}

/// As far as descriptors go; then all together, since a preloaded interpreter forks many for little more than one.
void NodeRanks::start_all() {
  starting_.clear();
  short_of_.reset();
  const auto& options = starts_.options();
  const bool on_terminal = options.machine.on_terminal && !plan::is_python(options.settings.options.program);
  for (std::size_t i = 0; i < places().size(); ++i) {
    auto start = starts_.describe(i);
    start.on_terminal = on_terminal && outputs_[i].stdout_on_console;  // a Python's own buffer is off
    auto one = PreparedRank::make(std::move(start));
    if (!one) short_of_ = one.error();
    if (!one) break;
    starting_.push_back(std::move(*one));
  }
  if (starting_.empty() && short_of_) say_failed(places().front(), *short_of_);
  if (starting_.empty()) return;
  std::vector<SpawnRequest> requests;
  for (const auto& one : starting_) requests.push_back(one.request());
  source_->spawn(requests, [this](std::size_t i, Result<Child> child) { take(i, std::move(child)); });
}

void NodeRanks::take(std::size_t index, Result<Child> child) {
  if (!child) return say_failed(places()[index], child.error());
  adopt(index, std::move(*child));
  const bool last = index + 1 == starting_.size();
  if (last && short_of_) say_failed(places()[index + 1], *short_of_);
}

void NodeRanks::adopt(std::size_t index, Child child) {
  const auto rank = places()[index].rank;
  auto process =
      RankProcess::adopt(io_, family_, disk_, std::move(starting_[index]), std::move(child), callbacks(rank));
  log::info(LogPart::kProcess, "rank {} of generation {} is process {}{}", rank.value, generation_.value,
            process->pid(), process->preloaded() ? ", preloaded" : "");
  outbox_.say(run::RankSpawned{generation_, rank, process->pid(), steady_now(), process->preloaded()});
  writers_.add(process->pid());
  if (held_ && is_shown(ranks_.size())) process->pause();
  ranks_.push_back(std::move(process));
}

void NodeRanks::say_failed(const RankPlace& place, const Error& error) {
  log::warning(LogPart::kProcess, "rank {} cannot be started: {}", place.rank.value, error.message);
  outbox_.say(run::RankSpawnFailed{generation_, place.rank, error.system_errno, error.message, steady_now()});
}

std::unique_ptr<RankSource> NodeRanks::make_source() {
  const auto& starts = starts_.options();
  RankSourceOptions wanted;
  wanted.choice = plan::choose_preload(starts.settings.options, starts.command, static_cast<int>(places().size()),
                                       plan::read_source);
  wanted.command = starts.command;
  if (const auto* name = deals_out_processors(starts); name != nullptr && !wanted.choice.modules.empty()) {
    wanted.choice = {{}, 0, fmt::format("{} is read when a process starts, before --numa-binding", name), true};
  }
  wanted.hook_folder = starts.machine.preload_hook;
  wanted.open_files_limit = starts.open_files_limit;
  return std::make_unique<RankSource>(io_, family_, std::move(wanted),
                                      [this](std::string why) { remark(std::move(why)); });
}

RankCallbacks NodeRanks::callbacks(Rank rank) {
  RankCallbacks calls;
  calls.on_line = [this, index = ranks_.size()](const ui::OutputLine& line) { show(index, line); };
  calls.on_log_error = [this](const Error& error) {
    remark(error.message + "; training goes on, and the file when it can be written again");
  };
  calls.on_facts = [this, rank, of = generation_](run::TrainingFacts facts) {
    outbox_.say(run::RankTrained{of, rank, std::move(facts)});
  };
  calls.on_lingering = [this, rank, of = generation_](run::Lingering state, std::string waits_for,
                                                      run::Evidence evidence) {
    outbox_.say(run::RankLingers{of, rank, state, std::move(waits_for), std::move(evidence), steady_now()});
  };
  calls.on_exit = [this, rank, of = generation_](run::ExitStatus status, run::Evidence evidence, Instant at) {
    ended(rank, of, status, std::move(evidence), at);
  };
  return calls;
}

void NodeRanks::ended(Rank rank, Generation of, run::ExitStatus status, run::Evidence evidence, Instant at) {
  log::info(LogPart::kProcess, "rank {} of generation {} has ended: code {}, signal {}", rank.value, of.value,
            status.code, status.signal);
  note_end_of_writer(rank, status);
  evidence.out_of_memory_kill = status.signal == SIGKILL && out_of_memory_struck();
  if (options_.on_end) options_.on_end(rank, evidence);
  outbox_.say(run::RankExited{of, rank, status, std::move(evidence), at});
}

void NodeRanks::note_end_of_writer(Rank rank, const run::ExitStatus& status) {
  using storage::WriterEnd;
  const bool by_itself = status.signal == 0 || status.signal == told_to_end_by_;
  const auto end = !by_itself                               ? WriterEnd::kKilled
                   : status.signal == 0 && status.code == 0 ? WriterEnd::kWell
                                                            : WriterEnd::kBadly;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (places()[i].rank == rank) writers_.ended(ranks_[i]->pid(), end);
  }
}

bool NodeRanks::out_of_memory_struck() const {
  auto now = oom_kills();
  return now && out_of_memory_kills_ && *now > *out_of_memory_kills_;
}

void NodeRanks::cancel_start() {
  start_wanted_ = false;
  if (source_) source_->forget();
  starting_.clear();
}

void NodeRanks::hurry() {
  if (source_) source_->hurry();
}

void NodeRanks::flush() {
  for (auto& rank : ranks_) rank->flush();
}

void NodeRanks::signal(const run::SignalRanks& request, const std::function<void()>& before) {
  if (request.generation != generation_) return;
  std::vector<int> leaders;
  for (Rank rank : request.ranks) {
    auto index = static_cast<std::size_t>(
        std::find_if(places().begin(), places().end(), [&](const auto& place) { return place.rank == rank; }) -
        places().begin());
    if (index >= ranks_.size() || !ranks_[index]->running()) continue;
    log::debug(LogPart::kProcess, "signal {} goes to rank {}", request.signal, rank.value);
    leaders.push_back(ranks_[index]->pid());
  }
  if (request.to_end) {
    told_to_end_by_ = request.signal;
    if (!request.sent) return void(family_.tell(leaders, request.signal, Audience::kAll, before));
    if (before) before();
    return family_.all_are_told();
  }
  auto unheard = family_.tell(leaders, request.signal, request.sent ? Audience::kNobody : Audience::kHandlers);
  outbox_.say(run::SignalAnswer{generation_, request.signal, static_cast<int>(leaders.size()),
                                static_cast<int>(unheard.size())});
}

std::optional<Rank> NodeRanks::rank_of(int pid) const {
  auto found = std::find_if(ranks_.begin(), ranks_.end(), [pid](const auto& rank) { return rank->pid() == pid; });
  return found == ranks_.end() ? std::nullopt
                               : std::optional(places()[static_cast<std::size_t>(found - ranks_.begin())].rank);
}

void NodeRanks::choose_streams() {
  auto chosen = plan::decide_streams(starts_.options().settings.options.output, places());
  outputs_ = chosen ? std::move(*chosen) : std::vector<plan::RankOutput>(places().size());
}

bool NodeRanks::is_shown(std::size_t index) const {
  return outputs_[index].stdout_on_console || outputs_[index].stderr_on_console;
}

void NodeRanks::hold_output(bool hold) {
  held_ = hold;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!is_shown(i)) continue;
    held_ ? ranks_[i]->pause() : ranks_[i]->resume();
  }
}

void NodeRanks::show(std::size_t index, const ui::OutputLine& line) {
  bool is_stderr = line.stream == ui::Stream::kStderr;
  bool shown = is_stderr ? outputs_[index].stderr_on_console : outputs_[index].stdout_on_console;
  if (shown || (options_.all_output && !held_)) {
    outbox_.add({line.rank, is_stderr, line.progress, line.text, line.at, line.open, line.raw});
  }
  if (is_stderr && line.text.rfind(kTraceback, 0) == 0) writers_.raised(line.at);
  bool refused = line.text.find("ermission denied") != std::string::npos;
  if (refused && starts_.options().read_only != nullptr && line.rank.value != 0) explain_refusal(line.rank);
}

void NodeRanks::explain_refusal(Rank rank) {
  if (std::exchange(refusal_explained_, true)) return;
  remark(fmt::format("rank {} was refused a write: {} for ranks other than 0", rank.value,
                     describe_protection(starts_.options().settings.options.output)));
}

void NodeRanks::tell_gap_of_protection() {
  if (starts_.options().read_only == nullptr) return;
  auto gap = landlock_gap(landlock_version());
  const bool by_flag = !starts_.options().settings.options.output.protected_directories.empty();
  if (!gap.empty()) remark((by_flag ? "--protect: " : "--rank-output none: ") + gap);
}

}  // namespace taas::node
