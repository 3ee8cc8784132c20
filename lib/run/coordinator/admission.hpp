#pragma once

#include <string>

#include "run/coordinator/cpu_machines.hpp"
#include "run/coordinator/nodes/membership.hpp"

namespace taas::run {

/// Who may take part, as far as the first message of an agent tells.
class Admission {
 public:
  Admission(std::string version, const Agents& agents, const Membership& membership, const DataNodes& data_nodes)
      : version_(std::move(version)), agents_(agents), membership_(membership), data_nodes_(data_nodes) {}

  /// Why this agent may not take part; empty: it may.
  [[nodiscard]] std::string refusal(const Hello& hello) const;
  /// A host that was lost is started again, and its former agent looks for the coordinator as well: one of both is
  /// enough.
  [[nodiscard]] bool came_back_twice(const Hello& hello) const;

 private:
  std::string version_;
  const Agents& agents_;
  const Membership& membership_;
  const DataNodes& data_nodes_;
};

}  // namespace taas::run
