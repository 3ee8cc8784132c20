#include "start/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/ids.hpp"
#include "launch/local_run.hpp"
#include "launch/remote_run.hpp"
#include "net/addresses.hpp"
#include "node/agent_process.hpp"
#include "plan/decide_launch_mode.hpp"
#include "proc/family/keeper.hpp"
#include "proc/spawn/signals.hpp"
#include "run/coordinator/nodes/data_nodes.hpp"
#include "slurm/meeting.hpp"
#include "slurm/requeue.hpp"
#include "slurm/staged_jobs.hpp"
#include "slurm/step.hpp"
#include "slurm/submit.hpp"
#include "start/local_programs.hpp"
#include "start/run_facts.hpp"
#include "start/serve.hpp"
#include "start/token.hpp"

namespace taas::cli {
namespace {

constexpr int kKeyBytes = 32;
constexpr auto kRefusalPatience = std::chrono::seconds(60);
constexpr int kDataGroup = 1;  // of a heterogeneous job

/// Where other machines may find this one.
Result<std::vector<std::string>> listen_addresses(const plan::LaunchPlan& plan) {
  auto addresses = net::candidate_addresses(plan.options.nodes.interface);
  if (addresses && addresses->empty()) return std::vector<std::string>{net::loopback_address()};
  return addresses;
}

Result<launch::RemoteRunOptions> remote_options(Launching& launching) {
  auto addresses = listen_addresses(launching.plan);
  if (!addresses) return addresses.error();
  launch::RemoteRunOptions options;
  options.secret = {launching.plan.run_id, net::parse_key(random_hex(kKeyBytes)).value()};
  options.listen_addresses = std::move(*addresses);
  options.started = run_started(launching);
  options.working_directory = options.started.folder;
  options.plan = std::move(launching.plan);
  options.machine = std::move(launching.machine);
  return options;
}

Result<int> exit_code_of(const Result<launch::RunEnd>& end) {
  if (!end) return end.error();
  return end->exit_code;
}

/// A job that is asked for with --requeue and was told to stop goes back into the queue: last of all, since this ends
/// it. A run that ended with 0 has done its work.
Result<int> end_job(const Result<launch::RunEnd>& end, const plan::SlurmOptions& slurm, const plan::SlurmJob& job) {
  if (end && end->told_to_stop && end->exit_code != 0 && slurm.requeue) requeue(job.id, job.restart_count);
  return exit_code_of(end);
}

/// CPU machines: their orders follow those of the nodes.
void add_data_hosts(std::vector<launch::HostEntry>& entries, const plan::LaunchPlan& plan) {
  const auto& nodes = plan.options.nodes;
  auto path = nodes.remote_taas_run.value_or(called_path());
  int order = plan.expected_agents;
  if (!plan.data.group.empty()) {
    launch::HostEntry step{run::kEveryDataNode, "the step of CPU machines",
                           launch::step_command(plan.data.count, called_path(), kDataGroup)};
    step.data = true;
    step.order_base = order;
    entries.push_back(std::move(step));
  }
  for (const auto& host : plan.data.hosts) {
    launch::HostEntry entry{order++, host.name, launch::ssh_command(nodes.ssh_command, destination(host), path)};
    entry.data = true;
    entry.data_workers = host.slots.value_or(0);
    entries.push_back(std::move(entry));
  }
}

Result<launch::RunEnd> coordinate(launch::RemoteRunOptions options) {
  add_data_hosts(options.hosts, options.plan);
  auto lifeline = become_kept();
  if (!lifeline) return lifeline.error();
  return launch::coordinate(options, std::move(*lifeline));
}

Result<std::optional<launch::DataHosts>> data_hosts_of(const plan::LaunchPlan& plan, const std::string& folder) {
  if (plan.data.names().empty()) return std::nullopt;
  auto addresses = listen_addresses(plan);
  if (!addresses) return addresses.error();
  launch::DataHosts data;
  data.secret = {plan.run_id, net::parse_key(random_hex(kKeyBytes)).value()};
  data.listen_addresses = std::move(*addresses);
  data.working_directory = folder;
  add_data_hosts(data.hosts, plan);
  return std::optional(std::move(data));
}

launch::HostEntry agent_here(int order, const std::string& name) {
  return {order, name, {called_path(), "--as-agent"}};
}

Result<int> go(const plan::OneMachine&, Launching& launching) {
  auto started = run_started(launching);
  auto data_hosts = data_hosts_of(launching.plan, started.folder);
  if (!data_hosts) return data_hosts.error();
  auto lifeline = become_kept();
  if (!lifeline) return lifeline.error();
  return launch::run_on_this_machine({std::move(launching.plan), std::move(launching.machine),
                                      std::move(launching.program), std::move(started), std::move(*data_hosts)},
                                     std::move(*lifeline));
}

Result<int> go(const plan::OverSsh& mode, Launching& launching) {
  const auto nodes = launching.plan.options.nodes;
  auto wanted = static_cast<std::size_t>(launching.plan.expected_agents);
  auto options = remote_options(launching);
  if (!options) return options.error();
  auto path = nodes.remote_taas_run.value_or(called_path());
  for (std::size_t i = 0; i < std::min(wanted, mode.hosts.size()); ++i) {
    const auto& host = mode.hosts[i];
    options->hosts.push_back(
        {static_cast<int>(i), host.name, launch::ssh_command(nodes.ssh_command, destination(host), path)});
  }
  return exit_code_of(coordinate(std::move(*options)));
}

Result<int> go(const plan::SlurmAllocation& mode, Launching& launching) {
  if (LocalPrograms(launching.machine.environment).find_in_path("srun").empty()) {
    return usage_error(fmt::format(
        "job {}: srun, which starts agents on its nodes, is not in PATH; --standalone trains on this machine alone",
        mode.job.id));
  }
  auto nodes = launching.plan.expected_agents;
  auto slurm = launching.plan.options.slurm;
  auto options = remote_options(launching);
  if (!options) return options.error();
  options->machine.environment.erase("SLURM_NTASKS_PER_GPU");  // srun takes it for a flag that excludes ours
  options->hosts.push_back({-1, fmt::format("job {}", mode.job.id), launch::step_command(nodes, called_path())});
  return end_job(coordinate(std::move(*options)), slurm, mode.job);
}

Result<int> go(const plan::SlurmTask& mode, Launching& launching) {
  if (!mode.is_leader() || mode.step.nodes.size() > 1) {
    if (auto lives = check_step(mode); !lives) return lives.error();
  }
  Meeting meeting(launching.plan.options.output.directory, mode, launching.machine.environment);
  if (!mode.is_leader()) return meeting.wait_for_leader();
  if (auto led = meeting.lead(); !led) return led.error();
  if (!mode.coordinates()) {
    auto bootstrap = meeting.file().await(launching.plan.options.nodes.join_timeout);
    if (!bootstrap) return bootstrap.error();
    bootstrap->order = mode.step.node_id;
    return serve_as_called(std::move(*bootstrap), std::move(launching.machine));
  }
  auto slurm = launching.plan.options.slurm;
  auto options = remote_options(launching);
  if (!options) return meeting.file().refuse(options.error().message), options.error();
  options->hosts.push_back(agent_here(0, options->machine.hostname));
  options->on_listening = [&meeting](const node::Bootstrap& bootstrap) { return meeting.file().announce(bootstrap); };
  auto end = coordinate(std::move(*options));
  end ? meeting.file().conclude() : meeting.file().refuse(end.error().message);
  return end_job(end, slurm, mode.job);
}

node::Bootstrap joining(const plan::Join& mode, const plan::LaunchPlan& plan, const net::Secret& secret) {
  const auto& nodes = plan.options.nodes;
  node::Bootstrap bootstrap;
  bootstrap.run_id = secret.run_id;
  bootstrap.key = net::print_key(secret.key);
  bootstrap.addresses = {mode.host};
  bootstrap.port = mode.port;
  bootstrap.order = mode.node_rank.value_or(-1);
  bootstrap.interface = nodes.interface;
  bootstrap.node_timeout_ms = static_cast<int>(nodes.node_timeout.count());
  bootstrap.coordinator_first = false;
  bootstrap.join_timeout_ms = static_cast<int>(nodes.join_timeout.count());
  bootstrap.log_level = plan.options.output.log_level;
  if (plan.nodes_count_themselves) bootstrap.ranks = plan.nodes.front().local_world_size;
  return bootstrap;
}

/// The first node's plan counts for all: a node that asked for something else must not run as if it had not.
Resolve resolve_as_joined(plan::LaunchPlan here) {
  return [here = std::move(here)](const node::Launch& launch, plan::Machine& machine) {
    auto same = plan::check_same_wishes(here, launch.settings, launch.most_ranks_on_node);
    const auto& own = here.options.output.directory;
    const bool ignored = own != plan::OutputOptions().directory && own != launch.settings.options.output.directory;
    if (same && ignored) {
      fmt::print(stderr, "taas-run: --output {} has no effect on this node: the first node has chosen {}\n", own,
                 launch.run_folder);
    }
    return same ? resolve_here(launch, machine) : Result<plan::ResolvedProgram>(same.error());
  };
}

/// `first` is kept until the run has ended.
Result<int> coordinate_joined(const plan::Join& mode, const net::Secret& secret, FirstNode first, Launching& launching,
                              Lifeline lifeline) {
  launching.plan.note(first.remark);
  auto options = remote_options(launching);
  if (!options) return options.error();
  options->secret = secret;
  options->port = mode.port;
  options->listen_addresses = std::move(first.listen_addresses);
  options->hosts.push_back(agent_here(mode.node_rank.value_or(0), options->machine.hostname));
  add_data_hosts(options->hosts, options->plan);
  return exit_code_of(launch::coordinate(*options, std::move(lifeline)));
}

/// Looks for the first node. One that was told nothing (`twin` is there) decides again before each attempt whether it
/// is that node itself: a name may be known later, or stand for another machine then.
Result<int> join(const plan::Join& mode, const net::Secret& secret, Launching& launching, Lifeline lifeline,
                 std::optional<Lifeline> twin) {
  Result<std::optional<FirstNode>> first = std::nullopt;
  node::AgentProcessOptions options{joining(mode, launching.plan, secret), launching.machine,
                                    resolve_as_joined(launching.plan)};
  if (twin) {
    options.takes_over = [&](const auto& found) {
      first = try_to_be_first(mode, found, launching.machine.environment);
      return !first || first->has_value();
    };
  }
  auto code = node::serve_as_agent(std::move(options), std::move(lifeline));
  if (!code) return code.error();
  if (*code) return **code;
  if (!first) return first.error();
  return coordinate_joined(mode, secret, std::move(**first), launching, std::move(*twin));
}

Result<int> go(const plan::Join& mode, Launching& launching) {
  auto secret = joining_secret(mode, launching.plan.options.nodes, launching.token);
  if (!secret) return secret.error();
  auto lifeline = become_kept();
  if (!lifeline) return lifeline.error();
  auto told = mode.node_rank ? std::optional<bool>(*mode.node_rank == 0) : mode.is_host;
  if (told == false) return join(mode, *secret, launching, std::move(*lifeline), std::nullopt);
  if (told == true) {
    auto own = listen_addresses(launching.plan);
    if (!own) return own.error();
    const bool all = launching.plan.options.nodes.interface.empty();
    auto loopback = net::loopback_address();  // for other agents of this machine
    if (all && own->front() != loopback) own->push_back(std::move(loopback));
    auto first = be_first(mode, std::move(*own), launching.machine.environment);
    if (!first) return first.error();
    return coordinate_joined(mode, *secret, std::move(*first), launching, std::move(*lifeline));
  }
  auto twin = lifeline->twin();
  if (!twin) return twin.error();
  return join(mode, *secret, launching, std::move(*lifeline), std::move(*twin));
}

Result<int> go(const plan::SlurmSubmit&, Launching& launching) {
  return submit(launching.plan, called_path(), launching.arguments);
}

/// In the job of the CPU machines their agents are a step of it; else they come as the GPU nodes do.
void add_machines(launch::RemoteRunOptions& options, const std::string& preparing_job) {
  if (!preparing_job.empty()) return options.jobs.push_back({preparing_job, true});
  launch::HostEntry step{run::kEveryDataNode, "the CPU machines",
                         launch::step_command(options.plan.data.count, called_path())};
  step.data = true;
  step.order_base = options.plan.expected_agents;
  options.hosts.push_back(std::move(step));
}

/// Nodes of jobs of their own look for this process in the output folder.
Result<int> coordinate_staged(Launching& launching, const StagedIds& ids) {
  auto file = meeting_file(launching.plan.options.output.directory, ids.held);
  launching.token = take_token(launching.machine);
  auto options = remote_options(launching);
  if (!options) return cancel_jobs(ids), options.error();
  options->jobs.push_back({ids.held, false});
  add_machines(*options, ids.preparing);
  options->on_listening = [&](node::Bootstrap bootstrap) {
    bootstrap.order_base = options->plan.expected_agents;
    return file.announce(bootstrap);
  };
  auto end = coordinate(*options);
  file.conclude();
  if (!end) cancel_jobs(ids);
  return exit_code_of(end);
}

Result<int> go(const plan::SlurmStaged& mode, Launching& launching) {
  if (!mode.held_job.empty()) return coordinate_staged(launching, {mode.held_job, ""});
  auto& plan = launching.plan;
  hold_until_received();  // between the jobs and their coordinator nobody would cancel them
  auto ids = submit_staged(plan, called_path(), launching.arguments);
  if (!ids) return ids.error();
  if (plan.options.slurm.detach) return print_ids(*ids, plan.options.data.loader);
  plan.notices.push_back(describe(*ids, plan.options.data.loader));
  return coordinate_staged(launching, *ids);
}

}  // namespace

Result<int> launch(Launching launching) {
  auto mode = launching.plan.launch_mode;
  bool submits = std::holds_alternative<plan::SlurmSubmit>(mode) || std::holds_alternative<plan::SlurmStaged>(mode);
  if (!submits) launching.token = take_token(launching.machine);
  return std::visit([&launching](const auto& chosen) { return go(chosen, launching); }, mode);
}

void refuse_in_step(const plan::Options& options, plan::Machine machine, const Error& error) {
  auto mode = plan::decide_launch_mode(options, machine);
  const auto* task = mode ? std::get_if<plan::SlurmTask>(&*mode) : nullptr;
  if (!task || !task->is_leader()) return;
  Meeting meeting(options.output.directory, *task, machine.environment);
  if (task->coordinates()) return meeting.file().refuse(error.message);
  auto bootstrap = meeting.file().await(kRefusalPatience);
  if (!bootstrap) return;  // the others end as well
  bootstrap->order = task->step.node_id;
  (void)serve(std::move(*bootstrap), std::move(machine),
              [error](const node::Launch&, plan::Machine&) -> Result<plan::ResolvedProgram> { return error; });
}

}  // namespace taas::cli
