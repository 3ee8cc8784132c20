#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace taas {

/// The gradients of a bucket's parameters, as a backward of this rank would have left them: views of `average`, in
/// which they lie one after the other in the order of their memory. A sparse average is that of the one parameter.
void keep_gradients(const at::Tensor& average, const std::vector<at::Tensor>& parameters);

}  // namespace taas
