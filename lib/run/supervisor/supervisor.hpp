#pragma once

#include <memory>
#include <vector>

#include "run/events/events.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// The run's logic: before each generation it asks for nodes, and what comes with NodesGathered replaces the policy's
/// world; starts, exits, stops, restarts and the verdict. Pure: events in, actions out, no clock, no I/O.
/// One instance lives for one run. Feed every event in the order it became known and carry out the actions in order.
class Supervisor {
 public:
  explicit Supervisor(Policy policy);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  std::vector<Action> handle(const Event& event);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::run
