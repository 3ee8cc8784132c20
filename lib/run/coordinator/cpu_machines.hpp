#pragma once

#include <string>

#include "run/coordinator/agents.hpp"
#include "run/coordinator/loader_wait.hpp"

namespace taas::run {

/// The agents of CPU machines: how they come and go, and what all agents are told of their workers. Nothing about ranks
/// waits for them but --loader, and nothing ends with them.
class CpuMachines {
 public:
  CpuMachines(const CoordinatorPolicy& policy, Decisions& decisions, Agents& agents);
  CpuMachines(const CpuMachines&) = delete;  // the wait for the loader looks at the machines
  CpuMachines& operator=(const CpuMachines&) = delete;

  [[nodiscard]] const DataNodes& nodes() const { return nodes_; }
  [[nodiscard]] LoaderWait& loader() { return loader_; }

  void arrive(AgentId agent, const Hello& hello);
  // After each of these tell_all() follows.
  void ready(AgentId agent, const Ready& message) { nodes_.ready(agent, message.data_ports); }
  void refuse(AgentId agent, const std::string& why, int exit_code);
  void fail(int order) { nodes_.fail(order); }
  void lose(AgentId agent);
  void tell_loss(const Hello& hello, const AgentLoss& loss);

  /// Its workers have prepared --loader; simulated ones belong to an agent of ranks.
  void prepared(AgentId agent);
  /// Tells this agent of all workers, or every agent, once it is known which there are.
  void tell(AgentId agent);
  void tell_all();

  void start_lost(Instant now);
  [[nodiscard]] std::optional<Instant> next_start() const { return nodes_.next_start(); }

 private:
  Decisions& decisions_;
  Agents& agents_;
  DataNodes nodes_;
  LoaderWait loader_;
};

}  // namespace taas::run
