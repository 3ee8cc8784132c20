#include "launch/remote_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <cstdio>
#include <optional>

#include "base/environment/environment.hpp"
#include "base/ids.hpp"
#include "base/log/log_file.hpp"
#include "base/text.hpp"
#include "base/timer.hpp"
#include "launch/batch_job.hpp"
#include "launch/coordinator_loop.hpp"
#include "launch/coordinator_policy.hpp"
#include "launch/downlink.hpp"
#include "net/connect/listener.hpp"
#include "node/launch.hpp"
#include "node/preparation.hpp"
#include "proc/family/family.hpp"
#include "proc/spawn/open_files.hpp"
#include "proc/spawn/signals.hpp"
#include "run/coordinator/nodes/data_nodes.hpp"
#include "storage/folder_marker.hpp"

namespace taas::launch {
namespace {

constexpr int kDataKeyBytes = 32;
constexpr int kMarkBytes = 8;
constexpr auto kDismissalPatience = std::chrono::seconds(3);  // for agents that were dismissed

/// Where no mark can be left, each node is taken to have a folder of its own: what it delivers is then there already.
Result<run::CoordinatorPolicy> make_policy(const RemoteRunOptions& options, const storage::RunDirectory& folder) {
  auto policy = coordinator_policy(options.plan);
  auto run_mark = random_hex(kMarkBytes);
  auto mark = storage::mark_folder(folder.held(), run_mark);
  if (!mark) return mark.error();
  policy.folder = mark->empty() ? run_mark : *mark;
  policy.launch = node::print_launch(options.plan, options.machine, options.working_directory, folder,
                                     random_hex(kDataKeyBytes), run_mark);
  return policy;
}

/// Each has two descriptors.
std::size_t most_passages(const plan::LaunchPlan& plan) {
  const int descriptors = open_files_for_clients(plan.expected_agents + plan.data.count);
  return static_cast<std::size_t>(std::max(0, descriptors - net::ListenOptions().most_strangers)) / 2;
}

void tell_left_over(const Error& error) {
  std::fputs(fmt::format("taas-run: {}\n", printable(error.message)).c_str(), stderr);
}

/// The jobs of a staged submission. The run may be gone when SLURM answers.
class StagedJobs {
 public:
  StagedJobs(boost::asio::io_context& io, Family& family, const RemoteRunOptions& options,
             const std::unique_ptr<CoordinatorLoop>& run)
      : first_machine_(options.plan.expected_agents), run_(run) {
    auto environment = assignments(options.machine.environment);
    for (const auto& job : options.jobs) {
      BatchJob::Options wanted{job.id, job.data ? "the CPU machines" : "the GPU nodes", first_machine_, environment};
      if (job.data) wanted.nodes = options.plan.data.count;
      of(job.data).emplace(io, family, std::move(wanted), callbacks(job.data));
      of(job.data)->watch();
    }
  }

  void release() {
    if (ranks_) ranks_->release();
  }
  void arrived(int order) {
    auto& job = of(order >= first_machine_);
    if (job) job->arrived(order);
  }
  void end() {
    for (auto* job : {&ranks_, &machines_}) {
      if (!*job) continue;
      if (auto ended = (*job)->end(); !ended) tell_left_over(ended.error());
    }
  }

 private:
  std::optional<BatchJob>& of(bool data) { return data ? machines_ : ranks_; }
  BatchJob::Callbacks callbacks(bool data) {
    return {[this](std::string text) {
              if (run_) run_->say(std::move(text));
            },
            [this, data](const std::string& why) {
              if (!run_) return;
              data ? run_->host_failed(run::kEveryDataNode, why) : run_->nodes_over(why);
            }};
  }

  int first_machine_;
  const std::unique_ptr<CoordinatorLoop>& run_;
  std::optional<BatchJob> ranks_;
  std::optional<BatchJob> machines_;
};

/// Agents that were dismissed end by themselves, and with them what they were started with; the rest is ended.
void part(boost::asio::io_context& io, Family& family) {
  bool gone = false;
  Timer patience(io, [&] { family.sweep(SIGKILL, [&] { gone = true; }); });
  patience.set(steady_now() + kDismissalPatience);
  family.sweep(0, [&] { gone = true; });
  while (!gone) io.run_one();
}

}  // namespace

Result<RunEnd> coordinate(const RemoteRunOptions& options, Lifeline lifeline) {
  boost::asio::io_context io(1);
  auto open_files_limit = raise_open_files_limit();
  node::end_with_keeper(io, lifeline);
  if (auto watched = node::end_with_process(io, options.plan); !watched) return watched.error();
  std::unique_ptr<CoordinatorLoop> run;  // there before the event loop turns for the first time
  node::StorePassages passages(most_passages(options.plan));
  auto listener = net::Listener::listen(
      io, {options.listen_addresses, options.port, options.secret},
      [&run](std::unique_ptr<net::Link> link) {
        if (run) admit(std::move(link), *run);  // who comes after the end is too late
      },
      [&run, &passages](boost::asio::ip::tcp::socket client) {
        if (run) passages.lead(std::move(client), run->store_place());
      });
  if (!listener) return listener.error();
  auto folder = node::create_run_folder(options.plan, options.machine);
  if (!folder) return folder.error();
  log::open(folder->own_logs(), "coordinator");
  auto journal = JournalFile::open(folder->journal(), steady_now());
  if (!journal) return journal.error();
  auto bootstrap = meeting_point(options.plan.options, options.secret, options.listen_addresses, (*listener)->port());
  if (auto told = options.on_listening(bootstrap); !told) return told.error();

  auto policy = make_policy(options, *folder);
  if (!policy) return policy.error();
  CoordinatorLoopOptions loop{std::move(*policy), options.plan,    options.machine,
                              options.started,    folder->files(), folder->held()};
  loop.plan.note(folder->notice());
  if (std::holds_alternative<plan::Join>(options.plan.launch_mode)) {
    loop.meeting = {options.listen_addresses, (*listener)->port(), most_passages(options.plan)};
  }
  run = std::make_unique<CoordinatorLoop>(io, std::move(loop), std::move(*journal));
  Family family(io);
  auto notice = [&run](const std::string& text) {
    if (run) run->say(text);
  };
  HostStarter starter(
      io, family, {options.hosts, assignments(options.machine.environment), bootstrap, false, open_files_limit, notice},
      [&run](int order, const std::string& message) {
        if (run) run->host_failed(order, message);
      });
  run->set_on_start_agent([&starter](int order) { starter.start(order); });
  StagedJobs jobs(io, family, options, run);
  run->set_on_release([&jobs] { jobs.release(); });
  run->set_on_arrival([&](int order) {
    starter.arrived(order);
    jobs.arrived(order);
  });
  starter.start_all();
  RunEnd end{run->execute(), run->told_to_stop()};
  hold_stop_signals();
  run.reset();
  jobs.end();
  part(io, family);
  return end;
}

}  // namespace taas::launch
