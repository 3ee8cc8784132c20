#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace taas {

/// From now on operations on `copies` are operations on `parameter`: backward gives it the sum of their gradients, in
/// the order of the copies, on its own device. Without gradient mode, or when the parameter needs no gradient, the
/// copies are constants.
void tie_gradients(const at::Tensor& parameter, const std::vector<at::Tensor>& copies);

}  // namespace taas
