#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "training/backend/environment.hpp"

namespace taas {

/// What a ProcessGroup handle points to.
struct ProcessGroupState {
  Environment environment;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::string backend = "none";
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< null in a group of one process
  int exceptions_at_start = std::uncaught_exceptions();
  mutable bool ended = false;

  ProcessGroupState() = default;
  ProcessGroupState(const ProcessGroupState&) = delete;
  ProcessGroupState& operator=(const ProcessGroupState&) = delete;
  /// Ends the group: in order, or, when an exception is what ends it, without waiting for what is under way.
  ~ProcessGroupState();

  void shut_down() const;
  void abort() const;
};

}  // namespace taas
