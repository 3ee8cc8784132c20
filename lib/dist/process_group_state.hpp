#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "dist/environment.hpp"

namespace taas {

/// What a ProcessGroup handle points to.
struct ProcessGroupState {
  Environment environment;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::string backend = "none";
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< null in a group of one process
};

}  // namespace taas
