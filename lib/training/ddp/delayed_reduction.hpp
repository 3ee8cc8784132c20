#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "taas/process_group.hpp"

namespace taas {

/// The gradients of some parameters in one flat float32 buffer, reduced together when the gradient of another parameter
/// is ready; backward waits for it.
class DelayedReduction {
 public:
  /// Gives all ranks the parameters of rank 0: a collective.
  DelayedReduction(ProcessGroup group, std::vector<at::Tensor> parameters, const at::Tensor& trigger);
  ~DelayedReduction();
  DelayedReduction(const DelayedReduction&) = delete;
  DelayedReduction& operator=(const DelayedReduction&) = delete;

  /// After forward: gradients that are not defined become views of the buffer, with zeros.
  void attach_gradients();
  void use_group(const ProcessGroup& group) { group_ = group; }

 private:
  void reduce();

  ProcessGroup group_;
  std::vector<at::Tensor> parameters_;
  at::Tensor buffer_;
  std::vector<at::Tensor> views_;
  at::Tensor trigger_;
  unsigned hook_;
};

}  // namespace taas
