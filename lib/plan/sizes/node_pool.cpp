#include "plan/sizes/node_pool.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::plan {
namespace {

NodePool pool_of_hosts(const Options& options, const std::vector<Host>& hosts) {
  NodePool pool;
  pool.name = options.nodes.hosts ? "--hosts" : "--hostfile " + options.nodes.hostfile.value_or("");
  pool.hint = ", name:N for one host";
  for (const auto& host : hosts) {
    int slots = host.slots.value_or(0);
    pool.nodes.push_back({host.name, slots, slots > 0 ? slots : usual_ranks(0, options.size), slots, 0});
  }
  return pool;
}

/// Each node's GPUs, as SLURM has told; none where it has not. A step may have fewer than its job, of which only this
/// node can know.
std::vector<int> gpus_of_nodes(const SlurmJob& job, const std::vector<std::string>& nodes, const Machine& machine) {
  std::vector<int> gpus;
  for (const auto& node : nodes) {
    auto known = machine.job_gpus.find(node);
    if (known == machine.job_gpus.end()) return {};
    if (node == job.this_node && known->second != job.gpus_on_node) return {};
    gpus.push_back(known->second);
  }
  return gpus;
}

/// Where SLURM was not asked, all nodes are taken to have the same GPUs; without GPUs a task stands for a rank.
NodePool pool_of_job(std::string name, const SlurmJob& job, const std::vector<std::string>& nodes,
                     const std::vector<int>& tasks, const SizeOptions& options, const Machine& machine) {
  NodePool pool;
  pool.name = std::move(name);
  bool one_task_each = std::all_of(tasks.begin(), tasks.end(), [](int count) { return count <= 1; });
  auto known = gpus_of_nodes(job, nodes, machine);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    int gpus = known.empty() ? job.gpus_on_node : known[i];
    int ranks = ranks_for(gpus, options);
    int natural = gpus > 0 ? ranks : std::max(1, tasks[i]);
    int usual = gpus > 0 || !one_task_each ? natural : usual_ranks(0, options);
    int left_over = gpus % options.devices_per_rank;
    pool.nodes.push_back({nodes[i], 0, usual, natural, known.empty() || gpus == 0 ? 0 : ranks, left_over});
  }
  int most = known.empty() ? job.gpus_on_node : *std::max_element(known.begin(), known.end());
  pool.resources = {most, machine.cores, most > 0 && !known.empty()};
  return pool;
}

/// A task that does not coordinate knows its own GPUs only: whether a total fits is not its to judge.
NodePool pool_of_step(const SlurmTask& task, const SizeOptions& options, const Machine& machine) {
  auto name = fmt::format("step {}.{}", task.job.id, task.step.id);
  auto pool = pool_of_job(std::move(name), task.job, task.step.nodes, task.step.tasks_on_node, options, machine);
  bool judges = task.coordinates() || task.job.gpus_are_even || task.job.gpus_on_node == 0;
  for (auto& node : pool.nodes) node.usual = judges ? node.usual : kMostRanks;
  return pool;
}

NodePool open_house(std::string name, const SizeOptions& options) {
  NodePool pool;
  pool.name = std::move(name);
  pool.others.usual = usual_ranks(0, options);
  pool.closed = false;
  return pool;
}

/// Nodes that join are like this one.
NodePool pool_of_join(const Join& join, const SizeOptions& options, const Machine& machine) {
  auto pool = open_house(fmt::format("{}:{}", join.host, join.port), options);
  pool.others.usual = usual_ranks(machine.gpus, options);
  pool.others.natural = ranks_for(machine.gpus, options);
  pool.others.gpus_left_over = machine.gpus % options.devices_per_rank;
  pool.resources = {machine.gpus, machine.cores, false, machine.gpu_problem};
  return pool;
}

}  // namespace

NodePool describe_pool(const Options& options, const LaunchMode& mode, const Machine& machine) {
  if (const auto* ssh = std::get_if<OverSsh>(&mode)) return pool_of_hosts(options, ssh->hosts);
  if (const auto* task = std::get_if<SlurmTask>(&mode)) return pool_of_step(*task, options.size, machine);
  if (const auto* allocation = std::get_if<SlurmAllocation>(&mode)) {
    const auto& job = allocation->job;
    return pool_of_job("job " + job.id, job, job.nodes, job.tasks_on_node, options.size, machine);
  }
  if (const auto* join = std::get_if<Join>(&mode)) return pool_of_join(*join, options.size, machine);
  return open_house("--slurm", options.size);
}

}  // namespace taas::plan
