#pragma once

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "taas/error.hpp"
#include "training/graph/recording.hpp"

namespace taas {

/// The parameters of a group that have a gradient, with their gradients and states: what _foreach_ operations take.
template <class State>
struct ParameterLists {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> grads;
  std::vector<State*> states;

  void add(const ParameterLists& other, std::size_t index) {
    parameters.push_back(other.parameters[index]);
    grads.push_back(other.grads[index]);
    states.push_back(other.states[index]);
  }
};

/// The same in lists of one type and device each, as torch's _fused_ kernels take them.
template <class State>
std::vector<ParameterLists<State>> split_by_kind(const ParameterLists<State>& lists) {
  std::vector<ParameterLists<State>> parts;
  for (std::size_t i = 0; i < lists.parameters.size(); ++i) {
    const auto& parameter = lists.parameters[i];
    auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& known) {
      const auto& first = known.parameters.front();
      return first.scalar_type() == parameter.scalar_type() && first.device() == parameter.device();
    });
    if (part == parts.end()) part = parts.emplace(parts.end());
    part->add(lists, i);
  }
  return parts;
}

/// `make_state(parameter)` is for a parameter without one. Throws InvalidArgument for a sparse gradient.
template <class State, class MakeState>
ParameterLists<State> parameter_lists(torch::optim::OptimizerParamGroup& group, torch::optim::Optimizer& optimizer,
                                      const char* name, MakeState make_state) {
  ParameterLists<State> lists;
  for (auto& parameter : group.params()) {
    const auto& grad = parameter.grad();
    if (!grad.defined()) continue;
    if (grad.is_sparse()) {
      throw InvalidArgument(std::string("taas::") + name + " takes dense gradients only: torch::optim::" + name +
                            " may take sparse ones");
    }
    auto& slot = optimizer.state()[parameter.unsafeGetTensorImpl()];
    if (!slot) {
      // a replay would make it anew each time
      if (recording())
        throw InvalidArgument("a parameter had no step before its first recorded one: give more warm-up steps");
      slot = std::make_unique<State>(make_state(parameter));
    }
    lists.parameters.push_back(parameter);
    lists.grads.push_back(grad);
    lists.states.push_back(static_cast<State*>(slot.get()));
  }
  return lists;
}

}  // namespace taas
