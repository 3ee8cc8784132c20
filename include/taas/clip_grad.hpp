#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "taas/process_group.hpp"

// Gradient clipping with the numbers of Python's torch.nn.utils.clip_grad_norm_ and its relatives: the same operations
// in the same order, so the same bits. Nothing here waits for a GPU, except with `error_if_nonfinite`.

namespace taas {

struct ClipGradOptions {
  double norm_type = 2.0;           ///< of the p-norm; infinity: the largest absolute value
  bool error_if_nonfinite = false;  ///< throw InvalidArgument where the norm is infinite or not a number
};

/// The norm of all `tensors` as if they were one vector: a scalar on the device of the first one; 0 without tensors.
at::Tensor get_total_norm(const std::vector<at::Tensor>& tensors, const ClipGradOptions& options = {});

/// The norm over the tensors of all ranks of `group`, each of which has a part (a shard) of its own; the same on every
/// rank. All ranks call it, also one without tensors. Throws InvalidArgument for a `norm_type` of 0.
at::Tensor get_total_norm(const ProcessGroup& group, const std::vector<at::Tensor>& tensors,
                          const ClipGradOptions& options = {});

/// Multiplies the gradients of `parameters` by max_norm / (total_norm + 1e-6) where that is below 1. Parameters without
/// a gradient are left out.
void clip_grads_with_norm_(const std::vector<at::Tensor>& parameters, double max_norm, const at::Tensor& total_norm);

/// Scales the gradients of `parameters` so that their norm is `max_norm` at most; returns what it was before.
at::Tensor clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm,
                           const ClipGradOptions& options = {});

/// The same for parameters whose gradients are shards: see get_total_norm().
at::Tensor clip_grad_norm_(const ProcessGroup& group, const std::vector<at::Tensor>& parameters, double max_norm,
                           const ClipGradOptions& options = {});

/// Clamps each number in the gradients of `parameters` to -clip_value…clip_value.
void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

}  // namespace taas
