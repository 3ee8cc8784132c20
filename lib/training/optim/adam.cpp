#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_maximum.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_pow.h>
#include <ATen/ops/_foreach_reciprocal.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include "taas/optimizers.hpp"
#include "training/optim/optimizer_step.hpp"

namespace taas {
namespace {

using AdamTensors = std::vector<at::Tensor>;

struct Moments {
  AdamTensors means, squares, greatest;
};

template <class State>
Moments moments_of(const ParameterLists<State>& lists, bool amsgrad) {
  Moments moments;
  for (auto* state : lists.states) {
    moments.means.push_back(state->exp_avg());
    moments.squares.push_back(state->exp_avg_sq());
    if (amsgrad) moments.greatest.push_back(state->max_exp_avg_sq());
  }
  return moments;
}

/// The moving averages with the new gradients; returns the roots of the squares, one new tensor each.
template <class Options>
AdamTensors update_moments(const Moments& moments, const AdamTensors& grads, const Options& options,
                           const OptimizerKernels& kernels) {
  const auto [beta1, beta2] = options.betas();
  at::_foreach_lerp_(moments.means, grads, 1 - beta1);
  multiply(moments.squares, beta2, kernels);
  at::_foreach_addcmul_(moments.squares, grads, grads, 1 - beta2);
  if (options.amsgrad()) at::_foreach_maximum_(moments.greatest, moments.squares);
  return at::_foreach_sqrt(options.amsgrad() ? moments.greatest : moments.squares);
}

/// With the corrections of the moments' bias computed on the host.
template <class State, class Options>
void step_by_numbers(const ParameterLists<State>& lists, const AdamTensors& grads, const Options& options) {
  const auto [beta1, beta2] = options.betas();
  std::vector<at::Scalar> steps, corrections;
  for (auto* state : lists.states) {
    const auto count = static_cast<double>(state->step());
    steps.emplace_back(options.lr() / (1 - std::pow(beta1, count)) * -1);
    corrections.emplace_back(std::pow(1 - std::pow(beta2, count), 0.5));
  }
  const auto moments = moments_of(lists, options.amsgrad());
  auto denominators = update_moments(moments, grads, options, {});
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, options.eps());
  at::_foreach_addcdiv_(lists.parameters, moments.means, denominators, steps);
}

/// With counts and rate that are tensors: the operations of Python's capturable=True, in its order.
template <class State, class Options>
void step_by_tensors(const ParameterLists<State>& lists, const AdamTensors& grads, const AdamTensors& counts,
                     const at::Tensor& rate, const Options& options) {
  const auto [beta1, beta2] = options.betas();
  const auto moments = moments_of(lists, options.amsgrad());
  auto denominators = update_moments(moments, grads, options, {.capturable = true});
  auto steps = at::_foreach_pow(at::Scalar(beta1), counts);
  auto corrections = at::_foreach_pow(at::Scalar(beta2), counts);
  at::_foreach_sub_(steps, 1);
  at::_foreach_sub_(corrections, 1);
  at::_foreach_neg_(corrections);
  at::_foreach_div_(steps, rate);
  at::_foreach_reciprocal_(steps);
  at::_foreach_sqrt_(corrections);
  at::_foreach_div_(denominators, corrections);
  at::_foreach_add_(denominators, options.eps());
  at::_foreach_div_(denominators, steps);
  at::_foreach_addcdiv_(lists.parameters, moments.means, denominators);
}

template <class Options>
constexpr bool kDecoupled = std::is_same_v<Options, torch::optim::AdamWOptions>;

/// `rate`: a double, or a tensor.
template <class State, class Options, class Rate>
void fused_adam_step(const ParameterLists<State>& lists, const AdamTensors& counts, const Rate& rate,
                     const Options& options) {
  const auto [beta1, beta2] = options.betas();
  const auto [means, squares, greatest] = moments_of(lists, options.amsgrad());
  constexpr bool kMaximize = false;
  if constexpr (kDecoupled<Options>) {
    at::_fused_adamw_(lists.parameters, lists.grads, means, squares, greatest, counts, rate, beta1, beta2,
                      options.weight_decay(), options.eps(), options.amsgrad(), kMaximize);
  } else {
    at::_fused_adam_(lists.parameters, lists.grads, means, squares, greatest, counts, rate, beta1, beta2,
                     options.weight_decay(), options.eps(), options.amsgrad(), kMaximize);
  }
}

/// Weight decay: of the parameters themselves (AdamW), or as part of the gradients, which are returned. `rate` may be
/// undefined.
template <class State, class Options>
AdamTensors decay_weights(const ParameterLists<State>& lists, const at::Tensor& rate, const Options& options) {
  if (options.weight_decay() == 0) return lists.grads;
  if constexpr (!kDecoupled<Options>) {
    return at::_foreach_add(lists.grads, lists.parameters, options.weight_decay());
  } else {
    if (rate.defined()) {
      at::_foreach_mul_(lists.parameters, 1 - rate * options.weight_decay());
    } else {
      multiply(lists.parameters, 1 - options.lr() * options.weight_decay(), {});
    }
    return lists.grads;
  }
}

template <class State>
State fresh_moments(const at::Tensor& parameter, bool amsgrad) {
  State state;
  state.step(0);
  state.exp_avg(torch::zeros_like(parameter, at::MemoryFormat::Preserve));
  state.exp_avg_sq(torch::zeros_like(parameter, at::MemoryFormat::Preserve));
  if (amsgrad) state.max_exp_avg_sq(torch::zeros_like(parameter, at::MemoryFormat::Preserve));
  return state;
}

template <class State>
AdamTensors kept_by_adam(const State& state) {
  return {state.exp_avg(), state.exp_avg_sq(), state.max_exp_avg_sq()};
}

template <class State, class Options>
void update_adam(const ParameterLists<State>& lists, const Options& options, const detail::GroupContext& context) {
  auto& mirror = context.mirror;
  note_recorded(lists, mirror, kept_by_adam<State>);
  const auto [fused, capturable] = mirror.kernels;
  if (!fused && !capturable) {
    count_on_host(lists);
    return step_by_numbers(lists, decay_weights(lists, {}, options), options);
  }
  at::Tensor rate;
  if (capturable) rate = mirror.rate(context.index, options.lr(), lists.parameters.front());
  if (!fused) {
    const auto counts = count_step(lists, mirror);
    return step_by_tensors(lists, decay_weights(lists, rate, options), counts, rate, options);
  }
  for (const auto& part : split_by_kind(lists)) {
    const auto counts = count_step(part, mirror);
    capturable ? fused_adam_step(part, counts, rate, options) : fused_adam_step(part, counts, options.lr(), options);
  }
}

template <class State, class Options>
torch::Tensor step_adam(torch::optim::Optimizer& optimizer, const char* name, detail::StepMirror& mirror,
                        const torch::optim::Optimizer::LossClosure& closure) {
  return step_all<Options>(
      optimizer, name, mirror, closure, [&](auto& group, const auto& options, const auto& context) {
        auto lists = parameter_lists<State>(group, optimizer, name, [&](const at::Tensor& parameter) {
          return fresh_moments<State>(parameter, options.amsgrad());
        });
        if (!lists.parameters.empty()) update_adam(lists, options, context);
      });
}

bool mirrors_counts(const detail::StepMirror& mirror) { return mirror.kernels.fused || mirror.kernels.capturable; }

}  // namespace

Adam::Adam(const std::vector<torch::optim::OptimizerParamGroup>& groups, const torch::optim::AdamOptions& defaults,
           const OptimizerKernels& kernels)
    : torch::optim::Adam(groups, defaults), RecordableOptimizer(kernels) {}
torch::Tensor Adam::step(LossClosure closure) {
  return step_adam<torch::optim::AdamParamState, torch::optim::AdamOptions>(*this, "Adam", *mirror_, closure);
}
void Adam::before_recording() { refresh_mirror<torch::optim::AdamParamState>(*this, *mirror_); }
void Adam::before_replay() {
  before_recording();
  count_replay<torch::optim::AdamParamState>(*this, *mirror_, mirrors_counts(*mirror_));
}
bool Adam::still_recorded() {
  return is_still_recorded<torch::optim::AdamParamState>(*this, *mirror_, kept_by_adam<torch::optim::AdamParamState>);
}

AdamW::AdamW(const std::vector<torch::optim::OptimizerParamGroup>& groups, const torch::optim::AdamWOptions& defaults,
             const OptimizerKernels& kernels)
    : torch::optim::AdamW(groups, defaults), RecordableOptimizer(kernels) {}
torch::Tensor AdamW::step(LossClosure closure) {
  return step_adam<torch::optim::AdamWParamState, torch::optim::AdamWOptions>(*this, "AdamW", *mirror_, closure);
}
void AdamW::before_recording() { refresh_mirror<torch::optim::AdamWParamState>(*this, *mirror_); }
void AdamW::before_replay() {
  before_recording();
  count_replay<torch::optim::AdamWParamState>(*this, *mirror_, mirrors_counts(*mirror_));
}
bool AdamW::still_recorded() {
  return is_still_recorded<torch::optim::AdamWParamState>(*this, *mirror_, kept_by_adam<torch::optim::AdamWParamState>);
}

}  // namespace taas
