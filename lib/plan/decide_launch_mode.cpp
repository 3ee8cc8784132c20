#include "plan/decide_launch_mode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/environment/environment.hpp"
#include "plan/launch_mode/rendezvous.hpp"
#include "plan/options/exclusions.hpp"
#include "plan/options/launch_settings.hpp"
#include "plan/sizes/node_counts.hpp"
#include "plan/sizes/size_request.hpp"

namespace taas::plan {
namespace {

bool has_token(const Options& options, const Machine& machine) {
  return options.nodes.token_file || !value_of(machine.environment, kTokenVariable).empty();
}

/// Least and most nodes, as far as the flags alone say it.
Result<NodeRange> count_asked(const Options& options, const Machine& machine) {
  bool slurm_knows = machine.gpus == 0 && machine.environment.contains("SLURM_JOB_ID");
  auto request = read_size_request(options.size, {machine.gpus, machine.cores, slurm_knows, machine.gpu_problem});
  if (!request) return request.error();
  if (request->nodes) return *request->nodes;
  if (!request->total) return NodeRange{};
  int each = request->per_node.value_or(request->most_per_node.value_or(usual_ranks(machine.gpus, options.size)));
  int nodes = *request->total / each + (*request->total % each == 0 ? 0 : 1);
  return NodeRange{nodes, nodes};
}

bool has_endpoint(const RendezvousOptions& rendezvous) { return rendezvous.endpoint && !rendezvous.endpoint->empty(); }

/// Whether the rendezvous flags mean other machines, whatever SLURM says. An address of this machine does so only with
/// all that separates a meeting of several processes from torchrun's way to say "any port".
bool points_elsewhere(const Options& options, const Machine& machine) {
  const auto& rendezvous = options.rendezvous;
  if (rendezvous.node_rank || options.nodes.is_host) return true;
  if (has_endpoint(rendezvous)) {
    auto endpoint = read_endpoint(*rendezvous.endpoint);
    bool separate = rendezvous.run_id && has_token(options, machine);
    return endpoint && (!is_loopback(endpoint->host) || separate);
  }
  return rendezvous.master_addr && !is_loopback(*rendezvous.master_addr);
}

/// A place or a name to meet under: whoever gives one for several nodes means nodes that are started elsewhere, be it
/// in another terminal.
bool means_to_meet(const RendezvousOptions& rendezvous) {
  auto id = rendezvous.run_id.value_or("");
  return has_endpoint(rendezvous) || (!id.empty() && id != "none");  // torchrun's default
}

Result<LaunchMode> join(const Options& options, const Machine& machine, NodeRange nodes) {
  const auto& rendezvous = options.rendezvous;
  auto meeting = read_meeting_point(rendezvous);
  if (!meeting) return meeting.error();
  if (meeting->port < 1 || meeting->port > 65535) {
    return usage_error(
        fmt::format("{}: nodes that join need a port that all of them know, from 1 to 65535", meeting->flag));
  }
  if (rendezvous.node_rank && *rendezvous.node_rank >= nodes.most) {
    return usage_error(fmt::format("--node-rank {}: --nnodes {} has ranks 0 to {}", *rendezvous.node_rank, nodes.most,
                                   nodes.most - 1));
  }
  if (!has_token(options, machine)) {
    return usage_error(fmt::format(
        "{} nodes that join need a secret, the same on each, and {} is not set: (umask 077; taas-run token > "
        "FILE), then --token-file FILE or {}=$(cat FILE); --standalone simulates the nodes on this machine",
        nodes.most, kTokenVariable, kTokenVariable));
  }
  return Join{std::move(meeting->host),
              static_cast<std::uint16_t>(meeting->port),
              rendezvous.node_rank,
              options.nodes.is_host,
              rendezvous.run_id.value_or(""),
              nodes.least,
              nodes.most};
}

/// A step whose tasks all run torchrun's command line: SLURM tells them more than the flags do, and no secret is
/// needed.
bool is_step_of(const SlurmJob& job, const Options& options, const NodeRange& nodes) {
  if (!job.step || static_cast<int>(job.step->nodes.size()) != nodes.most) return false;
  return options.rendezvous.node_rank.value_or(job.step->node_id) == job.step->node_id;
}

Result<LaunchMode> use_hosts(const Options& options) {
  const auto& nodes = options.nodes;
  auto hosts = nodes.hosts ? parse_hosts(*nodes.hosts) : parse_hostfile(nodes.hostfile_text);
  if (hosts) return OverSsh{std::move(*hosts)};
  return std::move(hosts).error().with(nodes.hosts ? "--hosts" : "--hostfile " + *nodes.hostfile);
}

bool is_first_node(const SlurmJob& job, const Machine& machine) {
  auto here = job.this_node.empty() ? machine.hostname.substr(0, machine.hostname.find('.')) : job.this_node;
  return here == job.nodes.front();
}

/// srun started this process.
Result<LaunchMode> use_step(const SlurmJob& job, const NodeRange& asked) {
  const auto& step = *job.step;
  bool alone = step.nodes.size() == 1 && step.tasks_on_node.front() == 1;
  if (!alone) return SlurmTask{job, step};
  if (asked.most > 1 && job.nodes.size() > 1) {
    return usage_error(
        fmt::format("step {}.{} is one task on one node, and {} nodes are wanted: srun --nodes={} "
                    "--ntasks-per-node=1, or no srun at all",
                    job.id, step.id, asked.most, asked.most));
  }
  return OneMachine{};
}

/// A batch script or a shell of salloc: a step of its own is only needed for other machines than this one.
Result<LaunchMode> use_allocation(SlurmJob job, const Options& options, const Machine& machine) {
  bool here = is_first_node(job, machine);
  if (here && job.nodes.size() == 1) return OneMachine{};
  LaunchMode mode = SlurmAllocation{std::move(job)};
  auto counts = decide_node_counts(options, mode, machine);
  if (!counts) return counts.error();
  if (here && counts->expected_agents == 1) return OneMachine{};
  return mode;
}

/// Two jobs are submitted, unless this process is in the first of them.
Result<LaunchMode> stage(std::optional<SlurmJob> job, const SlurmOptions& options) {
  if (job && !options.held_job) {
    return usage_error(fmt::format("--slurm-staged: this is job {} already: call taas-run outside of a job", job->id));
  }
  return SlurmStaged{options.held_job.value_or(""), std::move(job)};
}

/// What SLURM says, or else this machine.
Result<LaunchMode> use_slurm(std::optional<SlurmJob> job, const Options& options, const Machine& machine,
                             const NodeRange& asked) {
  if (!job) return options.slurm.submit ? LaunchMode(SlurmSubmit{}) : LaunchMode(OneMachine{});
  return job->step ? use_step(*job, asked) : use_allocation(std::move(*job), options, machine);
}

}  // namespace

Result<LaunchMode> decide_launch_mode(const Options& options, const Machine& machine) {
  if (auto allowed = check_exclusions(options); !allowed) return allowed.error();
  if (options.rendezvous.standalone) return OneMachine{};
  if (options.nodes.hosts || options.nodes.hostfile) return use_hosts(options);

  auto asked = count_asked(options, machine);
  if (!asked) return asked.error();
  auto job = read_slurm(machine.environment, machine.typed);
  if (!job) return job.error();
  if (auto in_job = check_job_flags(options, job->has_value()); !in_job) return in_job.error();
  if (options.slurm.staged) return stage(std::move(*job), options.slurm);
  if (points_elsewhere(options, machine)) {
    bool by_slurm = *job && !has_token(options, machine) && is_step_of(**job, options, *asked);
    if (asked->most > 1 && !by_slurm) return join(options, machine, *asked);
    if (asked->most == 1 && options.rendezvous.node_rank.value_or(0) > 0) {
      return usage_error(
          fmt::format("--node-rank {}: --nnodes has to say how many nodes there are", *options.rendezvous.node_rank));
    }
  }
  auto mode = use_slurm(std::move(*job), options, machine, *asked);
  bool simulated = mode && std::holds_alternative<OneMachine>(*mode) && asked->most > 1;
  return simulated && means_to_meet(options.rendezvous) ? join(options, machine, *asked) : mode;
}

}  // namespace taas::plan
