#pragma once

#include <optional>

#include "taas/comm_hooks.hpp"

namespace taas {

/// The sum of `gradients` over the ranks of `group` in `type` (unset: their own), divided by the world size afterwards:
/// all_reduce_average divides first, and other bits are lost. The result is of `type`. A sparse bucket is the gradient
/// itself: that may become one of another type meanwhile.
GradientFuture average_in_type(const ProcessGroup& group, const at::Tensor& gradients,
                               std::optional<at::ScalarType> type);

}  // namespace taas
