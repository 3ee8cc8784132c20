#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <torch/optim/optimizer.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "taas/recordable_optimizer.hpp"
#include "training/graph/recording.hpp"
#include "training/graph/step_mirror.hpp"
#include "training/optim/parameter_lists.hpp"

// What the optimizers' steps have in common. A step that is being recorded changes nothing on the host; each of its
// replays is counted there by count_replay().

namespace taas {

/// Python's default on the CPU multiplies tensors one by one; torch's _foreach_mul_ would round the factor to 16 bits
/// there before it multiplies 16 bit numbers.
inline void multiply_one_by_one(const std::vector<at::Tensor>& tensors, double factor) {
  const auto number = at::native::wrapped_scalar_tensor(factor);
  for (const auto& tensor : tensors) tensor.mul_(number);
}

inline bool are_on_cpu(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return tensor.is_cpu(); });
}

/// The bits of Python's default: on the CPU without `foreach`, elsewhere with it; with `capturable` always with it.
inline void multiply(const std::vector<at::Tensor>& tensors, double factor, const OptimizerKernels& kernels) {
  if (!kernels.capturable && are_on_cpu(tensors)) return multiply_one_by_one(tensors, factor);
  at::_foreach_mul_(tensors, factor);
}

/// Notes what a step that is being recorded works on. `kept(state)`: the tensors of a state.
template <class State, class Kept>
void note_recorded(const ParameterLists<State>& lists, detail::StepMirror& mirror, Kept kept) {
  if (!recording()) return;
  for (std::size_t i = 0; i < lists.states.size(); ++i) {
    mirror.add_recorded({lists.parameters[i], kept(*lists.states[i])});
  }
}

/// A replay would begin it anew each time.
inline void refuse_first_momentum() {
  if (recording())
    throw InvalidArgument("a parameter had no momentum before its first recorded step: give more warm-up steps");
}

template <class State>
void count_on_host(const ParameterLists<State>& lists) {
  if (recording()) return;
  for (auto* state : lists.states) state->step(state->step() + 1);
}

/// Counts this step, on the host and in the tensors, which are returned.
template <class State>
std::vector<at::Tensor> count_step(const ParameterLists<State>& lists, detail::StepMirror& mirror) {
  std::vector<at::Tensor> counts;
  for (std::size_t i = 0; i < lists.states.size(); ++i) {
    counts.push_back(mirror.count(lists.parameters[i], lists.states[i]->step()));
  }
  at::_foreach_add_(counts, 1);
  if (recording()) return counts;
  for (const auto& parameter : lists.parameters) mirror.counted(parameter);
  count_on_host(lists);
  return counts;
}

/// Calls `update(group, options, context)` for each group.
template <class Options, class Update>
torch::Tensor step_all(torch::optim::Optimizer& optimizer, const char* name, detail::StepMirror& mirror,
                       const torch::optim::Optimizer::LossClosure& closure, Update update) {
  torch::Tensor loss;
  if (closure) loss = closure();  // with gradients on, as the caller left them
  torch::NoGradGuard no_grad;
  mirror.start_step(name);
  auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    update(groups[i], static_cast<Options&>(groups[i].options()), detail::GroupContext{mirror, i});
  }
  return loss;
}

/// Calls `update(lists, rate, options)` for each group with gradients; `rate` is undefined where the one of the options
/// is meant. `fresh(parameter)`: its first state; `kept` as in note_recorded().
template <class Options, class State, class Fresh, class Kept, class Update>
torch::Tensor step_lists(torch::optim::Optimizer& optimizer, const char* name, detail::StepMirror& mirror,
                         const torch::optim::Optimizer::LossClosure& closure, Fresh fresh, Kept kept, Update update) {
  return step_all<Options>(optimizer, name, mirror, closure,
                           [&](auto& group, const Options& options, const detail::GroupContext& context) {
                             const auto lists = parameter_lists<State>(group, optimizer, name, fresh);
                             if (lists.parameters.empty()) return;
                             note_recorded(lists, mirror, kept);
                             at::Tensor rate;
                             if (mirror.kernels.capturable)
                               rate = mirror.rate(context.index, options.lr(), lists.parameters.front());
                             update(lists, rate, options);
                           });
}

template <class State>
concept CountsSteps = requires(State& state) {
  state.step();
};

template <class State>
State* state_of(torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  auto slot = optimizer.state().find(parameter.unsafeGetTensorImpl());
  return slot == optimizer.state().end() ? nullptr : static_cast<State*>(slot->second.get());
}

template <class State>
void refresh_mirror(torch::optim::Optimizer& optimizer, detail::StepMirror& mirror) {
  auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    mirror.refresh_rate(i, groups[i].options().get_lr());
    if constexpr (CountsSteps<State>) {
      for (const auto& parameter : groups[i].params()) {
        if (auto* state = state_of<State>(optimizer, parameter)) mirror.refresh_count(parameter, state->step());
      }
    }
  }
}

/// `mirrored`: counts are tensors too, which the replay raises.
template <class State>
void count_replay(torch::optim::Optimizer& optimizer, detail::StepMirror& mirror, bool mirrored) {
  if constexpr (CountsSteps<State>) {
    for (const auto& recorded : mirror.recorded()) {
      if (auto* state = state_of<State>(optimizer, recorded.parameter)) state->step(state->step() + 1);
      if (mirrored) mirror.counted(recorded.parameter);
    }
  }
}

template <class State, class Kept>
bool is_still_recorded(torch::optim::Optimizer& optimizer, const detail::StepMirror& mirror, Kept kept) {
  for (const auto& recorded : mirror.recorded()) {
    auto* state = state_of<State>(optimizer, recorded.parameter);
    if (!state) return false;
    const auto now = kept(*state);
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (i >= recorded.state.size() || !now[i].is_same(recorded.state[i])) return false;
    }
  }
  return true;
}

}  // namespace taas
