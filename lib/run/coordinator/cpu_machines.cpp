#include "run/coordinator/cpu_machines.hpp"

#include <fmt/format.h>

namespace taas::run {

CpuMachines::CpuMachines(const CoordinatorPolicy& policy, Decisions& decisions, Agents& agents)
    : decisions_(decisions), agents_(agents), nodes_(policy.data), loader_(policy, nodes_, decisions) {}

void CpuMachines::arrive(AgentId agent, const Hello& hello) {
  nodes_.arrive(agent, hello);
  loader_.machine_came();
  agents_.silence().watch(agent, decisions_.now());
}

void CpuMachines::refuse(AgentId agent, const std::string& why, int exit_code) {
  decisions_.notify(fmt::format("{} makes no batches: {}", agents_.at(agent).hello.hostname, why));
  nodes_.refuse(agent);
  agents_.dismiss(agent, why, exit_code);
}

void CpuMachines::lose(AgentId agent) {
  nodes_.lose(agent, decisions_.now());
  loader_.forget(agent);
}

void CpuMachines::tell_loss(const Hello& hello, const AgentLoss& loss) {
  decisions_.notify(fmt::format("CPU machine {} was lost: {}; the others go on", hello.hostname, loss.reason));
}

void CpuMachines::prepared(AgentId agent) {
  loader_.prepared(agent);
  if (nodes_.has(agent)) nodes_.prepared(agent);
}

void CpuMachines::tell(AgentId agent) {
  if (!nodes_.list().workers.empty() && loader_.workers_are_known()) agents_.send(agent, nodes_.list());
}

void CpuMachines::tell_all() {
  if (loader_.workers_are_known()) agents_.send_all(nodes_.list());
}

void CpuMachines::start_lost(Instant now) {
  for (int order : nodes_.hosts_to_start(now)) decisions_.emit(StartAgent{order});
}

}  // namespace taas::run
