#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "taas/ddp/options.hpp"
#include "taas/process_group.hpp"
#include "training/ddp/module_tensors.hpp"
#include "training/ddp/reducer.hpp"

namespace taas {

/// The parameters of a module in a type of fewer bits, from the start of forward until their gradients are reduced.
class LowPrecision : public std::enable_shared_from_this<LowPrecision> {
 public:
  /// `trained` are the reducer's parameters, in its order.
  LowPrecision(const torch::nn::Module& module, const IgnoredNames& ignored, const std::vector<NamedTensor>& trained,
               const MixedPrecision& settings);
  ~LowPrecision();
  LowPrecision(const LowPrecision&) = delete;
  LowPrecision& operator=(const LowPrecision&) = delete;

  /// Once: gradients are summed by a hook of this class.
  void attach(const std::shared_ptr<Reducer>& reducer, const ProcessGroup& group);
  void use_group(const ProcessGroup& group);
  /// Before forward.
  void lower();
  /// After a forward without a backward; nothing where one is still to come.
  void raise();
  void cast_input(at::Tensor& input) const;

 private:
  class SumHook;
  /// One parameter, and what the reducer has to be told in its backward.
  struct Lowered {
    at::Tensor parameter;
    at::Tensor full;                           ///< its values for the optimizer
    std::optional<std::size_t> reducer_index;  ///< when its gradient is reduced
    c10::intrusive_ptr<torch::autograd::Node> accumulator = nullptr;
    std::uintptr_t hook = 0;
  };

  void watch(Lowered& lowered);
  static void unwatch(Lowered& lowered);
  void raise_bucket(const std::vector<at::Tensor>& parameters);
  void end_backward();

  c10::ScalarType param_dtype_;
  c10::ScalarType reduce_dtype_;
  std::vector<Lowered> parameters_;
  std::shared_ptr<Reducer> reducer_;
  std::shared_ptr<SumHook> hook_;
};

}  // namespace taas
