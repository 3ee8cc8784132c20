#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <vector>

namespace taas {

/// Multiplies all gradients of an optimizer by `inverse_scale`, in place. Returns for each device that has gradients a
/// float32 scalar, 1 where one of them is infinite or not a number. Both scalars given are on the device of the scale.
/// Throws InvalidArgument for gradients in float16.
std::vector<at::Tensor> unscale_gradients(torch::optim::Optimizer& optimizer, const at::Tensor& inverse_scale,
                                          const at::Tensor& none_found);

}  // namespace taas
