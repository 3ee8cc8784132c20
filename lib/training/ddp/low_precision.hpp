#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "taas/comm_hooks.hpp"
#include "taas/ddp/options.hpp"
#include "taas/process_group.hpp"
#include "training/ddp/module_tensors.hpp"
#include "training/ddp/precision/lowered_parameter.hpp"
#include "training/ddp/reducer.hpp"

namespace taas {

/// The parameters of a module in the type of MixedPrecision, from the start of forward until their gradients are
/// reduced: what Python's wrapper does in hooks of modules, of gradients and of the reducer.
class LowPrecision : public std::enable_shared_from_this<LowPrecision> {
 public:
  /// `trained` are the reducer's parameters, in its order. Buffers are cast for good.
  LowPrecision(const torch::nn::Module& module, const IgnoredNames& ignored, const std::vector<NamedTensor>& trained,
               const MixedPrecision& settings);

  /// Once: gradients of `reducer` are summed as MixedPrecision says. In a group of one process there is none.
  void attach(const std::shared_ptr<Reducer>& reducer, const ProcessGroup& group);
  void use_group(const ProcessGroup& group) { group_ = group; }

  bool casts_inputs() const { return param_dtype_.has_value(); }
  void cast_input(at::Tensor& input) const;
  /// `reduces`: whether the gradients of this forward are to be reduced.
  void start_forward(bool reduces);
  /// A forward without a graph has no backward that would give the parameters their values back.
  void end_forward();
  /// After backward, once the reducer has written the gradients: they are of the types of the parameters.
  void finish_gradients();

 private:
  class SumHook;

  void watch(std::size_t index);
  GradientFuture reduce(GradBucket& bucket);
  void queue_end_of_backward();
  void end_backward();
  bool all_reduced_are_raised() const;

  std::optional<at::ScalarType> param_dtype_;
  std::optional<at::ScalarType> reduce_dtype_;
  std::vector<LoweredParameter> parameters_;  ///< those of the reducer first, in its order
  std::size_t trained_;                       ///< how many of them the reducer has
  std::unordered_map<const at::TensorImpl*, std::size_t> places_;
  std::shared_ptr<SumHook> hook_;   ///< null in a group of one process
  std::weak_ptr<Reducer> reducer_;  ///< which owns the hook
  std::optional<ProcessGroup> group_;
  bool reduces_ = true;
  bool awaits_backward_ = false;
  bool end_is_queued_ = false;
};

}  // namespace taas
