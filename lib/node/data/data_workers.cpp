#include "node/data/data_workers.hpp"

#include <fmt/format.h>

#include <csignal>

#include "base/log/log.hpp"
#include "base/timer.hpp"
#include "node/process/rank_process.hpp"
#include "proc/family/family.hpp"
#include "run/agent/restart_pause.hpp"
#include "run/events/words.hpp"

namespace taas::node {
namespace {

std::string describe(const ExitStatus& status) {
  if (status.signal != 0) return fmt::format("was killed by {}", run::signal_name(status.signal));
  return fmt::format("exited with code {}", status.code);
}

std::string last_of(const std::vector<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (!line->empty()) return *line;
  }
  return "";
}

}  // namespace

struct DataWorkers::Worker {
  DataWorkerStart start;
  run::RestartPause pause;
  std::unique_ptr<RankProcess> process;
  std::unique_ptr<Timer> again;
};

struct DataWorkers::State {
  boost::asio::io_context& io;
  Family& family;
  DiskThread& disk;
  std::vector<std::string> command;
  std::function<void(const DataWorkerEnd&)> on_end;
  std::vector<std::unique_ptr<Worker>> workers;
  bool ending = false;

  /// A worker is no member of a generation: what ends a generation passes it by.
  Result<> spawn(Worker& worker) {
    const auto& given = worker.start;
    RankStart start;
    start.rank = Rank{-1};
    start.argv = command;
    start.environment = given.environment;
    start.read_only = given.read_only;
    start.stdout_file = given.logs.with("/stdout.log");
    start.stderr_file = given.logs.with("/stderr.log");
    start.inherited = {&given.listeners->tcp, &given.listeners->unix_stream};
    RankCallbacks calls;
    calls.on_line = [](const ui::OutputLine&) {};
    calls.on_log_error = [](const Error&) {};
    calls.on_exit = [this, &worker](ExitStatus status, const run::Evidence& evidence, Instant at) {
      ended(worker, status, evidence, at);
    };
    auto process = RankProcess::start(io, family, disk, std::move(start), std::move(calls));
    if (!process) return process.error();
    family.spare((*process)->pid());
    log::info(LogPart::kProcess, "{} is process {}", given.name, (*process)->pid());
    worker.process = std::move(*process);
    return {};
  }

  void ended(Worker& worker, ExitStatus status, const run::Evidence& evidence, Instant at) {
    family.unspare(worker.process->pid());
    if (ending) return;
    bool killed = status.signal != 0 && status.signal != SIGABRT;  // abort() is the end that a program gives itself
    report(worker, killed, describe(status), last_of(evidence.last_lines), at);
  }

  void report(Worker& worker, bool killed, std::string why, std::string last_line, Instant at) {
    log::warning(LogPart::kProcess, "{} {}: {}", worker.start.name, why, last_line);
    worker.again->set(steady_now() + worker.pause.next(at));
    on_end({worker.start.worker, worker.start.name, killed, std::move(why), std::move(last_line),
            worker.pause.is_news(), at});
  }

  void start_again(Worker& worker) {
    auto started = spawn(worker);
    if (!started) report(worker, false, "could not be started again", started.error().message, steady_now());
  }
};

DataWorkers::DataWorkers(boost::asio::io_context& io, Family& family, DiskThread& disk,
                         std::vector<std::string> command, std::function<void(const DataWorkerEnd&)> on_end)
    : state_(new State{io, family, disk, std::move(command), std::move(on_end), {}, false}) {}

DataWorkers::~DataWorkers() {
  state_->ending = true;
  for (auto& worker : state_->workers) {
    worker->again->clear();
    if (worker->process && worker->process->running()) worker->process->signal(SIGKILL);
  }
}

Result<> DataWorkers::start(DataWorkerStart start) {
  auto& worker = state_->workers.emplace_back(std::make_unique<Worker>());
  worker->start = std::move(start);
  worker->again = std::make_unique<Timer>(state_->io, [this, raw = worker.get()] { state_->start_again(*raw); });
  return state_->spawn(*worker);
}

}  // namespace taas::node
