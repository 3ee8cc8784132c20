#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>

#include <vector>

#include "taas/optimizers.hpp"
#include "training/optim/optimizer_step.hpp"

namespace taas {
namespace {

using torch::optim::RMSpropOptions;
using torch::optim::RMSpropParamState;
using RmspropLists = ParameterLists<RMSpropParamState>;
using RmspropTensors = std::vector<at::Tensor>;

RmspropTensors kept_by_rmsprop(const RMSpropParamState& state) {
  return {state.square_avg(), state.momentum_buffer(), state.grad_avg()};
}

RMSpropParamState fresh_averages(const at::Tensor& parameter) {
  RMSpropParamState state;
  state.square_avg(torch::zeros_like(parameter, at::MemoryFormat::Preserve));
  return state;
}

RmspropTensors square_averages(const RmspropLists& lists) {
  RmspropTensors all;
  for (auto* state : lists.states) all.push_back(state->square_avg());
  return all;
}

/// One tensor of each state: zeros where an option asks for one that no step before did.
template <class Of>
RmspropTensors begun(const RmspropLists& lists, Of of) {
  RmspropTensors all;
  for (std::size_t i = 0; i < lists.states.size(); ++i) {
    at::Tensor& kept = of(*lists.states[i]);
    if (!kept.defined()) {
      refuse_first_momentum();
      kept = torch::zeros_like(lists.parameters[i], at::MemoryFormat::Preserve);
    }
    all.push_back(kept);
  }
  return all;
}

/// What gradients are divided by, one new tensor each. Centered: the deviation from their average.
RmspropTensors denominators_of(const RmspropLists& lists, const RmspropTensors& grads, const RMSpropOptions& options,
                               const OptimizerKernels& kernels) {
  const auto squares = square_averages(lists);
  multiply(squares, options.alpha(), kernels);
  at::_foreach_addcmul_(squares, grads, grads, 1 - options.alpha());
  RmspropTensors roots;
  if (options.centered()) {
    const auto averages = begun(lists, [](auto& state) -> at::Tensor& { return state.grad_avg(); });
    at::_foreach_lerp_(averages, grads, 1 - options.alpha());
    roots = at::_foreach_addcmul(squares, averages, averages, -1);
    at::_foreach_sqrt_(roots);
  } else {
    roots = at::_foreach_sqrt(squares);
  }
  at::_foreach_add_(roots, options.eps());
  return roots;
}

/// `rate` is undefined where the one of the options is meant.
void update_rmsprop(const RmspropLists& lists, const at::Tensor& rate, const RMSpropOptions& options,
                    const OptimizerKernels& kernels) {
  auto grads = lists.grads;
  count_on_host(lists);
  if (options.weight_decay() != 0) grads = at::_foreach_add(grads, lists.parameters, options.weight_decay());
  auto denominators = denominators_of(lists, grads, options, kernels);
  if (options.momentum() > 0) {
    const auto buffers = begun(lists, [](auto& state) -> at::Tensor& { return state.momentum_buffer(); });
    multiply(buffers, options.momentum(), kernels);
    at::_foreach_addcdiv_(buffers, grads, denominators);
    if (rate.defined()) {
      at::_foreach_add_(lists.parameters, at::_foreach_mul(buffers, rate.neg()));
    } else {
      at::_foreach_add_(lists.parameters, buffers, -options.lr());
    }
  } else if (rate.defined()) {
    at::_foreach_div_(denominators, rate.neg());
    at::_foreach_addcdiv_(lists.parameters, grads, denominators);
  } else {
    at::_foreach_addcdiv_(lists.parameters, grads, denominators, -options.lr());
  }
}

}  // namespace

RMSprop::RMSprop(const std::vector<torch::optim::OptimizerParamGroup>& groups, const RMSpropOptions& defaults,
                 const OptimizerKernels& kernels)
    : torch::optim::RMSprop(groups, defaults), RecordableOptimizer(kernels) {
  if (kernels.fused) throw InvalidArgument("RMSprop cannot be fused: torch has no kernel for it");
}

torch::Tensor RMSprop::step(LossClosure closure) {
  return step_lists<RMSpropOptions, RMSpropParamState>(
      *this, "RMSprop", *mirror_, closure, fresh_averages, kept_by_rmsprop,
      [&](const auto& lists, const at::Tensor& rate, const auto& options) {
        update_rmsprop(lists, rate, options, kernels());
      });
}

void RMSprop::before_recording() { refresh_mirror<RMSpropParamState>(*this, *mirror_); }
void RMSprop::before_replay() {
  before_recording();
  count_replay<RMSpropParamState>(*this, *mirror_, /*mirrored=*/false);
}
bool RMSprop::still_recorded() { return is_still_recorded<RMSpropParamState>(*this, *mirror_, kept_by_rmsprop); }

}  // namespace taas
