#pragma once

#include <ATen/core/Tensor.h>

#include "taas/process_group.hpp"

namespace taas {

/// What training changes beside the parameters; undefined where it is not tracked.
struct RunningStatistics {
  at::Tensor mean, variance;
  double momentum = 0;
};

/// Normalises `input` [batch, channels, …] by the statistics over all ranks, each of which calls it; so does each
/// one's backward pass.
at::Tensor sync_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                     const RunningStatistics& running, double eps, const ProcessGroup& group);

}  // namespace taas
