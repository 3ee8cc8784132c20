#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <vector>

namespace taas {

namespace detail {

using RecomputedForward = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
at::Tensor recomputed(const torch::nn::Module& module, RecomputedForward forward, std::vector<at::Tensor> inputs);

template <class M, class... Inputs>
at::Tensor recomputed_call(const std::shared_ptr<M>& module, const Inputs&... inputs) {
  const auto forward = [module](const std::vector<at::Tensor>& given) {
    return [&]<std::size_t... kIndex>(std::index_sequence<kIndex...>) { return module->forward(given[kIndex]...); }
    (std::index_sequence_for<Inputs...>());
  };
  return recomputed(*module, forward, {inputs...});
}

}  // namespace detail

/// Activation checkpointing (Chen et al. 2016, arXiv:1604.06174): module->forward(inputs...), of tensors to a tensor,
/// of which no intermediate results are kept for backward. Backward computes them again, with the same random numbers
/// and under the same Autocast: the gradients are those of a plain call to the bit, and of Python's
/// torch.utils.checkpoint. Works under DistributedDataParallel with each of its options.
///
///     for (auto& block : blocks) x = taas::recomputed(block, x);
///
/// What else forward does it does twice: a batch norm counts a batch twice, as in Python. Gradients of gradients are
/// an error.
template <class M, class... Inputs>
requires(std::is_convertible_v<Inputs, at::Tensor>&&...) at::Tensor
    recomputed(const std::shared_ptr<M>& module, const Inputs&... inputs) {
  return detail::recomputed_call(module, inputs...);
}
template <class M, class... Inputs>
requires(std::is_convertible_v<Inputs, at::Tensor>&&...) at::Tensor
    recomputed(const torch::nn::ModuleHolder<M>& module, const Inputs&... inputs) {
  return detail::recomputed_call(module.ptr(), inputs...);
}

}  // namespace taas
