#include "hosts/local_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <deque>
#include <optional>

#include "hosts/display.hpp"
#include "hosts/preparation.hpp"
#include "hosts/rank_process.hpp"
#include "hosts/timer.hpp"
#include "proc/family.hpp"
#include "proc/keeper.hpp"
#include "proc/memory_watch.hpp"
#include "proc/open_files.hpp"
#include "proc/signals.hpp"
#include "run/supervisor.hpp"
#include "storage/liveness.hpp"
#include "storage/publisher.hpp"

namespace taas::hosts {
namespace {

using Level = ui::Message::Level;

constexpr auto kWatchAfter = std::chrono::milliseconds(100);  // no rank has written anything sooner
constexpr auto kKillPatience = std::chrono::seconds(5);       // for processes that are stuck in the kernel

run::Policy policy_of(const plan::LaunchPlan& plan) {
  run::Policy policy;
  policy.world_size = plan.world_size();
  for (const auto& rank : plan.ranks) policy.node_of_rank.push_back(rank.node);
  policy.max_restarts = plan.options.supervision.max_restarts;
  policy.shutdown_timeout = plan.options.supervision.shutdown_timeout;
  if (const auto& chosen = plan.options.supervision.signals_to_handle; !chosen.empty()) policy.stop_signals = chosen;
  return policy;
}

/// A log folder that cannot be made leaves the rank without a file, not the run without the rank.
std::string path_or_none(Result<std::string> path) { return path ? std::move(*path) : std::string(); }

/// torchrun's one macro in the program's arguments.
std::vector<std::string> fill_in_local_rank(std::vector<std::string> command, int local_rank) {
  for (auto& word : command) boost::algorithm::replace_all(word, "${local_rank}", std::to_string(local_rank));
  return command;
}

/// The run itself: carries out what the logic decides, and tells it what happens.
class LocalRun {
 public:
  LocalRun(boost::asio::io_context& io, Preparation ready)
      : io_(io),
        ready_(std::move(ready)),
        plan_(ready_.options.plan),
        display_(io, plan_, ready_.options.machine, [this](bool crowded) { hold_back(crowded); }),
        supervisor_(policy_of(plan_)),
        family_(io),
        deadline_(io, [this] { feed(run::DeadlineReached{steady_now()}); }) {}

  void begin();
  int execute();

 private:
  void watch_output();
  void feed(run::Event event);
  void carry_out(const run::Action& action);
  void act(const run::StartGeneration& action);
  void act(const run::SignalRanks& action);
  void act(const run::KillGeneration&) { sweep(SIGKILL); }
  void act(const run::SweepGeneration& action) { sweep(action.signal); }
  void act(const run::SetDeadline& action) { deadline_.set(action.at); }
  void act(const run::ClearDeadline&) { deadline_.clear(); }
  void act(const run::SettleOutput& action);
  void act(const run::Notify& action) { display_.say(Level::kInfo, action.text); }
  void act(const run::ReportFailure& action);
  void act(const run::Finish& action);

  bool start_rank(Rank rank);
  RankStart describe(Rank rank) const;
  RankCallbacks callbacks(Rank rank);
  std::vector<std::string> environment_of(Rank rank, const std::string& error_file) const;
  void receive(int signal, Instant at);
  void sweep(int signal);
  void hold_back(bool crowded);
  bool is_shown(Rank rank) const;
  void show_line(const ui::OutputLine& line);
  void explain_refusal(Rank rank);
  bool out_of_memory_struck() const;
  bool writers_alive() const;
  void keep_journal(const Result<>& written) {
    if (!written) display_.say(Level::kWarning, written.error().message);
  }

  boost::asio::io_context& io_;
  Preparation ready_;
  const plan::LaunchPlan& plan_;
  Display display_;
  run::Supervisor supervisor_;
  Family family_;
  Timer deadline_;
  std::unique_ptr<storage::Publisher> publisher_;
  plan::RunAddresses addresses_;
  std::optional<std::uint64_t> open_files_limit_;    // the user's, given back to ranks
  std::vector<std::unique_ptr<RankProcess>> ranks_;  // of the generation at hand, by rank
  Generation generation_{};
  std::optional<long> out_of_memory_kills_;  // when the generation began
  std::deque<run::Event> pending_;
  bool feeding_ = false;
  bool crowded_ = false;
  bool all_well_ = true;  // no rank of the generation has failed
  bool refusal_explained_ = false;
  std::optional<run::Verdict> verdict_;
};

void LocalRun::begin() {
  open_files_limit_ = raise_open_files_limit();
  const auto& rendezvous = plan_.options.rendezvous;
  addresses_.master_addr = "127.0.0.1";  // every rank is here, whatever local name was asked for
  addresses_.master_port = ready_.store->port();
  addresses_.agent_store = !rendezvous.store_on_rank0;
  addresses_.output_directory = ready_.folder.staging();
  *ready_.on_joined = [this](Rank rank) { feed(run::RankJoined{generation_, rank, steady_now()}); };
  if (rendezvous.store_on_rank0) ready_.store.reset();  // it only found a free port for rank 0
  watch_output();
}

void LocalRun::watch_output() {
  storage::PublisherOptions options;
  options.staging = ready_.folder.staging();
  options.files = ready_.folder.files();
  options.writers_alive = [this] { return writers_alive(); };
  options.watch_after = kWatchAfter;
  options.on_error = [this](const Error& error) { display_.say(Level::kWarning, error.message); };
  publisher_ = storage::Publisher::start(io_, std::move(options));
}

int LocalRun::execute() {
  for (const auto& notice : plan_.notices) display_.say(Level::kInfo, notice);
  SignalSource source(io_, {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH},
                      [this](int signal, Instant at) { receive(signal, at); });
  feed(run::RunStarted{steady_now()});
  while (!verdict_) io_.run_one();
  display_.finish();
  return verdict_->exit_code;
}

void LocalRun::receive(int signal, Instant at) {
  if (signal == SIGWINCH) {
    display_.resize();
  } else {
    feed(run::SignalReceived{signal, at});
  }
}

/// Events that come up while one is being handled wait their turn, so the logic sees them one after the other.
void LocalRun::feed(run::Event event) {
  pending_.push_back(std::move(event));
  if (feeding_) return;
  feeding_ = true;
  while (!pending_.empty()) {
    run::Event next = std::move(pending_.front());
    pending_.pop_front();
    keep_journal(ready_.journal.write(next));
    display_.show(ui::RunEvent{next});
    for (const auto& action : supervisor_.handle(next)) carry_out(action);
  }
  feeding_ = false;
}

void LocalRun::carry_out(const run::Action& action) {
  keep_journal(ready_.journal.write(action));
  std::visit([this](const auto& decided) { act(decided); }, action);
  display_.show(ui::RunAction{action});
}

void LocalRun::act(const run::StartGeneration& action) {
  generation_ = action.generation;
  ranks_.clear();
  all_well_ = true;
  out_of_memory_kills_ = oom_kills();
  if (ready_.store) ready_.store->begin_generation();
  for (const auto& rank : plan_.ranks) {
    if (!start_rank(rank.rank)) return;
  }
}

bool LocalRun::start_rank(Rank rank) {
  auto process = RankProcess::start(io_, family_, describe(rank), callbacks(rank));
  if (!process) {
    const Error& error = process.error();
    all_well_ = false;
    feed(run::RankSpawnFailed{generation_, rank, error.system_errno, error.message, steady_now()});
    return false;
  }
  feed(run::RankSpawned{generation_, rank, (*process)->pid(), steady_now()});
  if (crowded_ && is_shown(rank)) (*process)->pause();
  ranks_.push_back(std::move(*process));
  return true;
}

RankStart LocalRun::describe(Rank rank) const {
  const auto& folder = ready_.folder;
  RankStart start;
  start.rank = rank;
  start.argv = fill_in_local_rank(ready_.options.command, plan_.ranks[static_cast<std::size_t>(rank.value)].local_rank);
  start.stdout_path = path_or_none(folder.rank_log(generation_, rank, storage::LogStream::kStdout));
  start.stderr_path = path_or_none(folder.rank_log(generation_, rank, storage::LogStream::kStderr));
  start.error_file = path_or_none(folder.error_file(generation_, rank));
  start.environment = environment_of(rank, start.error_file);
  if (rank.value != 0 && ready_.read_only) start.read_only = &*ready_.read_only;
  start.open_files_limit = open_files_limit_;
  start.inherits_stdin = rank.value == 0;
  return start;
}

std::vector<std::string> LocalRun::environment_of(Rank rank, const std::string& error_file) const {
  plan::RunAddresses addresses = addresses_;
  addresses.error_file = error_file;
  const auto& machine = ready_.options.machine;
  auto variables = machine.environment;
  for (auto& [name, value] : plan::rank_environment(plan_, machine, rank, generation_, addresses)) {
    variables.insert_or_assign(name, value);
  }
  std::vector<std::string> list;
  list.reserve(variables.size());
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

RankCallbacks LocalRun::callbacks(Rank rank) {
  RankCallbacks calls;
  calls.on_line = [this](const ui::OutputLine& line) { show_line(line); };
  calls.on_log_error = [this](const Error& error) {
    display_.say(Level::kWarning, error.message + "; training goes on without that file");
  };
  calls.on_exit = [this, rank, generation = generation_](ExitStatus status, run::Evidence evidence, Instant at) {
    all_well_ = all_well_ && status.success();
    evidence.out_of_memory_kill = status.signal == SIGKILL && out_of_memory_struck();
    feed(run::RankExited{generation, rank, status, std::move(evidence), at});
  };
  return calls;
}

bool LocalRun::out_of_memory_struck() const {
  auto now = oom_kills();
  return now && out_of_memory_kills_ && *now > *out_of_memory_kills_;
}

void LocalRun::show_line(const ui::OutputLine& line) {
  display_.show(line);
  bool refused = line.text.find("ermission denied") != std::string::npos;
  if (refused && ready_.read_only && line.rank.value != 0 && !refusal_explained_) explain_refusal(line.rank);
}

void LocalRun::explain_refusal(Rank rank) {
  refusal_explained_ = true;
  display_.say(Level::kWarning,
               fmt::format("rank {} was refused a write: --protect makes {} read-only for ranks other than 0",
                           rank.value, fmt::join(plan_.options.output.protected_directories, ", ")));
}

bool LocalRun::is_shown(Rank rank) const {
  const auto& output = plan_.outputs[static_cast<std::size_t>(rank.value)];
  return output.stdout_on_console || output.stderr_on_console;
}

void LocalRun::hold_back(bool crowded) {
  crowded_ = crowded;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!is_shown(plan_.ranks[i].rank)) continue;
    crowded ? ranks_[i]->pause() : ranks_[i]->resume();
  }
}

void LocalRun::act(const run::SignalRanks& action) {
  for (Rank rank : action.ranks) {
    auto index = static_cast<std::size_t>(rank.value);
    if (index < ranks_.size() && ranks_[index]->running()) ranks_[index]->signal(action.signal);
  }
}

void LocalRun::sweep(int signal) {
  family_.sweep(signal, [this, generation = generation_] {
    for (auto& rank : ranks_) rank->flush();
    feed(run::GenerationGone{generation, steady_now()});
  });
}

/// Files whose writer died stay unpublished; the next generation may write them again.
void LocalRun::act(const run::ReportFailure& action) {
  if (action.restarting) publisher_->abandon([](const std::vector<std::string>&) {});
}

void LocalRun::act(const run::SettleOutput& /*action*/) {
  auto settled = [this](const std::string& error) { feed(run::OutputSettled{error, steady_now()}); };
  if (all_well_) return publisher_->settle(settled);
  publisher_->abandon([this, settled](const std::vector<std::string>& unpublished) {
    if (!unpublished.empty()) {
      display_.say(Level::kWarning,
                   fmt::format("not published, since their writer did not end well: {}", fmt::join(unpublished, ", ")));
    }
    settled("");
  });
}

void LocalRun::act(const run::Finish& action) {
  display_.set_output(ready_.folder.files(), publisher_->published());
  verdict_ = action.verdict;
}

/// What a rank still writes as it dies may be half a file: then nothing is published until the run has ended well.
bool LocalRun::writers_alive() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const auto& rank) { return rank->running() && storage::process_is_alive(rank->pid()); });
}

}  // namespace

Result<int> run_on_this_machine(LocalRunOptions options, Lifeline lifeline) {
  boost::asio::io_context io(1);
  lifeline.on_keeper_death(io, [] {
    kill_and_reap_descendants(kKillPatience);
    ::_exit(128 + SIGKILL);
  });
  auto ready = prepare(io, std::move(options));
  if (!ready) return ready.error();
  LocalRun run(io, std::move(*ready));
  run.begin();
  return run.execute();
}

}  // namespace taas::hosts
