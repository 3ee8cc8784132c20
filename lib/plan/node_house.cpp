#include "plan/node_house.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::plan {
namespace {

NodeHouse house_of_hosts(const Options& options, const std::vector<Host>& hosts) {
  NodeHouse house;
  house.name = options.nodes.hosts ? "--hosts" : "--hostfile " + options.nodes.hostfile.value_or("");
  house.hint = ", name:N for one host";
  for (const auto& host : hosts) {
    int slots = host.slots.value_or(0);
    house.nodes.push_back({host.name, slots, slots > 0 ? slots : kDefaultGpusPerNode, slots});
  }
  return house;
}

/// SLURM gives every node the same GPUs, as far as one of them can tell; without GPUs a task stands for a rank.
NodeHouse house_of_job(std::string name, const std::vector<std::string>& nodes, const std::vector<int>& tasks, int gpus,
                       const Machine& machine) {
  NodeHouse house;
  house.name = std::move(name);
  bool one_task_each = std::all_of(tasks.begin(), tasks.end(), [](int count) { return count <= 1; });
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    int natural = gpus > 0 ? gpus : std::max(1, tasks[i]);
    int usual = gpus > 0 || !one_task_each ? natural : kDefaultGpusPerNode;
    house.nodes.push_back({nodes[i], 0, usual, natural});
  }
  house.resources = {gpus, machine.cores};
  return house;
}

NodeHouse open_house(std::string name) {
  NodeHouse house;
  house.name = std::move(name);
  house.closed = false;
  return house;
}

/// Nodes that join are like this one.
NodeHouse house_of_join(const Join& join, const Machine& machine) {
  auto house = open_house(fmt::format("{}:{}", join.host, join.port));
  house.others.usual = std::max(kDefaultGpusPerNode, machine.gpus);
  house.others.natural = std::max(1, machine.gpus);
  house.resources = {machine.gpus, machine.cores};
  return house;
}

}  // namespace

NodeHouse describe_house(const Options& options, const Way& way, const Machine& machine) {
  if (const auto* ssh = std::get_if<OverSsh>(&way)) return house_of_hosts(options, ssh->hosts);
  if (const auto* task = std::get_if<SlurmTask>(&way)) {
    auto name = fmt::format("step {}.{}", task->job.id, task->step.id);
    return house_of_job(std::move(name), task->step.nodes, task->step.tasks_on_node, task->job.gpus_on_node, machine);
  }
  if (const auto* allocation = std::get_if<SlurmAllocation>(&way)) {
    const auto& job = allocation->job;
    return house_of_job("job " + job.id, job.nodes, job.tasks_on_node, job.gpus_on_node, machine);
  }
  if (const auto* join = std::get_if<Join>(&way)) return house_of_join(*join, machine);
  return open_house("--slurm");
}

}  // namespace taas::plan
