#include <fmt/format.h>

#include "plan/ways.hpp"

namespace taas::plan {
namespace {

std::string plural_nodes(std::size_t count) { return fmt::format("{} node{}", count, count == 1 ? "" : "s"); }

std::string describe_one(const OneMachine&) { return "this machine"; }
std::string describe_one(const OverSsh& way) {
  return fmt::format("ssh to {} host{}", way.hosts.size(), way.hosts.size() == 1 ? "" : "s");
}
std::string describe_one(const SlurmTask& way) {
  return fmt::format("task {} of step {}.{} on {}", way.step.proc_id, way.job.id, way.step.id,
                     plural_nodes(way.step.nodes.size()));
}
std::string describe_one(const SlurmAllocation& way) {
  return fmt::format("a step in job {} on {}", way.job.id, plural_nodes(way.job.nodes.size()));
}
std::string describe_one(const SlurmSubmit&) { return "a job of SLURM"; }
std::string describe_one(const Join& way) {
  auto host = way.host.find(':') == way.host.npos ? way.host : "[" + way.host + "]";
  auto least = way.min_nodes < way.max_nodes ? fmt::format("{} to ", way.min_nodes) : std::string();
  return fmt::format("{}{} nodes that meet at {}:{}", least, way.max_nodes, host, way.port);
}

}  // namespace

std::string describe(const Way& way) {
  return std::visit([](const auto& one) { return describe_one(one); }, way);
}

}  // namespace taas::plan
