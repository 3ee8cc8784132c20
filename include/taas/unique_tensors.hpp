#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_set>
#include <vector>

namespace taas {

/// Each tensor once, where it comes first. libtorch's parameters() and buffers() have one that is registered under two
/// names (tied weights) twice, Python's once. Whatever of this library takes tensors takes them so by itself; the
/// optimizers of torch::optim do not, and step a repeated one twice:
///
///     torch::optim::LBFGS optimizer(taas::unique_tensors(net->parameters()));
inline std::vector<at::Tensor> unique_tensors(std::vector<at::Tensor> tensors) {
  std::unordered_set<const at::TensorImpl*> seen;
  std::erase_if(tensors, [&](const at::Tensor& tensor) { return !seen.insert(tensor.unsafeGetTensorImpl()).second; });
  return tensors;
}

}  // namespace taas
