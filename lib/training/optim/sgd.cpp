#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_sgd.h>

#include <utility>
#include <vector>

#include "taas/optimizers.hpp"
#include "training/optim/optimizer_step.hpp"

namespace taas {
namespace {

using SgdLists = ParameterLists<torch::optim::SGDParamState>;
constexpr const char* kSgd = "SGD";

std::vector<at::Tensor> kept_by_sgd(const torch::optim::SGDParamState& state) { return {state.momentum_buffer()}; }

/// Momentum turns gradients into what is subtracted. A buffer begins as a copy of its first gradient.
std::vector<at::Tensor> with_momentum(const SgdLists& lists, std::vector<at::Tensor> grads,
                                      const torch::optim::SGDOptions& options, const OptimizerKernels& kernels) {
  std::vector<at::Tensor> buffers, known, known_grads;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    auto& buffer = lists.states[i]->momentum_buffer();
    if (buffer.defined()) {
      known.push_back(buffer);
      known_grads.push_back(grads[i]);
    } else {
      refuse_first_momentum();
      buffer = grads[i].detach().clone();
    }
    buffers.push_back(buffer);
  }
  if (!known.empty()) {
    multiply(known, options.momentum(), kernels);
    at::_foreach_add_(known, known_grads, 1 - options.dampening());
  }
  return options.nesterov() ? at::_foreach_add(grads, buffers, options.momentum()) : buffers;
}

/// `rate`: a double, or a tensor.
template <class Rate>
void fused_update(const SgdLists& lists, const torch::optim::SGDOptions& options, const Rate& rate, bool first) {
  if (lists.parameters.empty()) return;
  std::vector<at::Tensor> buffers;
  for (std::size_t i = 0; options.momentum() != 0 && i < lists.states.size(); ++i) {
    auto& buffer = lists.states[i]->momentum_buffer();
    if (first) buffer = at::empty_like(lists.grads[i]);
    buffers.push_back(buffer);
  }
  at::_fused_sgd_(lists.parameters, lists.grads, buffers, options.weight_decay(), options.momentum(), rate,
                  options.dampening(), options.nesterov(), /*maximize=*/false, first);
}

/// The kernel has one flag for all its parameters, whether their momentum begins.
std::pair<SgdLists, SgdLists> split_by_momentum(const SgdLists& lists) {
  std::pair<SgdLists, SgdLists> split;  // with a buffer, without
  for (std::size_t i = 0; i < lists.states.size(); ++i) {
    auto& part = lists.states[i]->momentum_buffer().defined() ? split.first : split.second;
    part.add(lists, i);
  }
  return split;
}

template <class Rate>
void fused_step(const SgdLists& lists, const torch::optim::SGDOptions& options, const Rate& rate) {
  if (options.momentum() == 0) return fused_update(lists, options, rate, false);
  auto [known, fresh] = split_by_momentum(lists);
  if (!fresh.parameters.empty()) refuse_first_momentum();
  fused_update(known, options, rate, false);
  fused_update(fresh, options, rate, true);
}

void foreach_step(const SgdLists& lists, const torch::optim::SGDOptions& options, const at::Tensor& rate,
                  const OptimizerKernels& kernels) {
  auto steps = lists.grads;
  if (options.weight_decay() != 0) steps = at::_foreach_add(steps, lists.parameters, options.weight_decay());
  if (options.momentum() != 0) steps = with_momentum(lists, std::move(steps), options, kernels);
  if (rate.defined()) {
    at::_foreach_add_(lists.parameters, at::_foreach_mul(steps, rate.neg()));
  } else {
    at::_foreach_add_(lists.parameters, steps, -options.lr());
  }
}

}  // namespace

SGD::SGD(const std::vector<torch::optim::OptimizerParamGroup>& groups, const torch::optim::SGDOptions& defaults,
         const OptimizerKernels& kernels)
    : torch::optim::SGD(groups, defaults), RecordableOptimizer(kernels) {}

torch::Tensor SGD::step(LossClosure closure) {
  return step_lists<torch::optim::SGDOptions, torch::optim::SGDParamState>(
      *this, kSgd, *mirror_, closure, [](const at::Tensor&) { return torch::optim::SGDParamState(); }, kept_by_sgd,
      [&](const auto& lists, const at::Tensor& rate, const auto& options) {
        if (!kernels().fused) return foreach_step(lists, options, rate, kernels());
        for (const auto& part : split_by_kind(lists)) {
          rate.defined() ? fused_step(part, options, rate) : fused_step(part, options, options.lr());
        }
      });
}

void SGD::before_recording() { refresh_mirror<torch::optim::SGDParamState>(*this, *mirror_); }
void SGD::before_replay() { before_recording(); }
bool SGD::still_recorded() { return is_still_recorded<torch::optim::SGDParamState>(*this, *mirror_, kept_by_sgd); }

}  // namespace taas
