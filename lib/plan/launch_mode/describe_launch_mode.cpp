#include <fmt/format.h>

#include "plan/launch_mode/launch_mode.hpp"

namespace taas::plan {
namespace {

std::string plural_nodes(std::size_t count) { return fmt::format("{} node{}", count, count == 1 ? "" : "s"); }

std::string describe_one(const OneMachine&) { return "this machine"; }
std::string describe_one(const OverSsh& mode) {
  return fmt::format("ssh to {} host{}", mode.hosts.size(), mode.hosts.size() == 1 ? "" : "s");
}
std::string describe_one(const SlurmTask& mode) {
  return fmt::format("task {} of step {}.{} on {}", mode.step.proc_id, mode.job.id, mode.step.id,
                     plural_nodes(mode.step.nodes.size()));
}
std::string describe_one(const SlurmAllocation& mode) {
  return fmt::format("a step in job {} on {}", mode.job.id, plural_nodes(mode.job.nodes.size()));
}
std::string describe_one(const SlurmSubmit&) { return "a job of SLURM"; }
std::string describe_one(const SlurmStaged& mode) {
  if (mode.held_job.empty()) return "two jobs of SLURM: the one with GPUs is held until the other one has prepared";
  return fmt::format("job {} of SLURM, which is held until this one has prepared", mode.held_job);
}
std::string describe_one(const Join& mode) {
  auto host = mode.host.find(':') == mode.host.npos ? mode.host : "[" + mode.host + "]";
  auto least = mode.min_nodes < mode.max_nodes ? fmt::format("{} to ", mode.min_nodes) : std::string();
  return fmt::format("{}{} nodes that meet at {}:{}", least, mode.max_nodes, host, mode.port);
}

}  // namespace

std::string describe(const LaunchMode& mode) {
  return std::visit([](const auto& one) { return describe_one(one); }, mode);
}

}  // namespace taas::plan
