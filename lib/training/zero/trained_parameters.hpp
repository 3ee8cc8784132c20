#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "taas/zero.hpp"
#include "training/zero/zero_state.hpp"

namespace taas {

/// A parameter that needs a gradient, with its place among all and its group.
struct TrainedParameter {
  at::Tensor tensor;
  std::size_t index = 0, group = 0;
};

/// Of all groups, in the order of `order` where it names them.
std::vector<TrainedParameter> trained_of(const ZeroOptimizer::Groups& groups, const std::vector<at::Tensor>& order);
std::vector<at::Tensor> trained_tensors(const std::vector<TrainedParameter>& trained);
StateMap map_of(const ZeroOptimizer::Groups& groups, const std::vector<TrainedParameter>& trained);
/// Throws InvalidArgument for options that do not fit, and for parameters that are none, elsewhere, or differ between
/// ranks.
std::vector<at::Tensor> checked(const ProcessGroup& group, std::vector<at::Tensor> parameters,
                                const ZeroOptions& options);

}  // namespace taas
