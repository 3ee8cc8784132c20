#include <ATen/core/Dict.h>
#include <torch/optim/optimizer.h>

#include <string>
#include <utility>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/optim/archived_state.hpp"
#include "training/optim/state_values.hpp"

namespace taas {
namespace {

using OptimizerStateGroups = c10::impl::GenericList;

/// Of no known kind: all tensors of a state have the shape of its parameter.
void check_states(const torch::optim::Optimizer& optimizer, const StateKind* kind, const StateFields& states) {
  const auto parameters = parameters_of(optimizer);
  for (const auto& entry : states) {
    const auto index = entry.key().toInt();
    const auto fields = entry.value().toGenericDict();
    if (kind) {
      kind->check_state(index, parameters, fields);
    } else {
      check_shapes(index, parameters.at(static_cast<std::size_t>(index)), fields);
    }
  }
}

c10::IValue state_of_kind(const torch::optim::Optimizer& optimizer, const StateKind& kind, StateTensors tensors) {
  auto states = plain_dict();
  auto groups = plain_list();
  std::int64_t index = 0;
  for (const auto& own : optimizer.param_groups()) {
    auto indices = plain_list();
    for (const auto& parameter : own.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) states.insert(index, kind.state(*found->second, tensors));
      indices.push_back(index++);
    }
    auto group = kind.options(own.options());
    group.insert(kParams, indices);
    groups.push_back(group);
  }
  auto all = plain_dict();
  all.insert("state", states);
  all.insert("param_groups", groups);
  return all;
}

/// All is made first, so that nothing is changed where something does not fit.
void load_kind(torch::optim::Optimizer& optimizer, const StateKind& kind, const StateFields& states,
               const OptimizerStateGroups& groups, bool takes) {
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& own = optimizer.param_groups()[i].options();
    options.push_back(kind.options_with(own, groups.get(i).toGenericDict()));
  }
  const auto parameters = parameters_of(optimizer);
  std::remove_reference_t<decltype(optimizer.state())> made;
  for (const auto& entry : states) {
    const auto& parameter = parameters.at(static_cast<std::size_t>(entry.key().toInt()));
    made[parameter.unsafeGetTensorImpl()] = kind.state_with(entry.value().toGenericDict(), parameter.device(), takes);
  }
  optimizer.state() = std::move(made);
  for (std::size_t i = 0; i < options.size(); ++i) optimizer.param_groups()[i].set_options(std::move(options[i]));
}

void load_state(torch::optim::Optimizer& optimizer, const c10::IValue& state, bool takes) {
  understood([&] {
    const auto all = state.toGenericDict();
    const auto states = all.at("state").toGenericDict();
    const auto groups = all.at("param_groups").toList();
    check_group_sizes(groups, group_sizes(optimizer));
    const auto* kind = known_kind_of(optimizer);
    check_states(optimizer, kind, states);
    if (kind) {
      load_kind(optimizer, *kind, states, groups, takes);
    } else {
      load_by_archive(optimizer, states, groups);
    }
  });
}

/// What belongs to each element of the parameter, which may be a scalar itself.
template <class Field>
bool is_moment(const Field& field) {
  return field.value().isTensor() && field.key().toStringRef() != "step";
}

}  // namespace

double number_from(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().item<double>() : value.toScalar().toDouble();
}

std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& group : optimizer.param_groups())
    all.insert(all.end(), group.params().begin(), group.params().end());
  return all;
}

void check_shapes(std::int64_t index, const at::Tensor& parameter, const StateFields& fields) {
  for (const auto& field : fields) {
    if (is_moment(field) && field.value().toTensor().sizes() != parameter.sizes())
      throw CheckpointError("the optimizer state of parameter " + std::to_string(index) + " has another shape (" +
                            field.key().toStringRef() + ") than the parameter");
  }
}

std::vector<std::size_t> group_sizes(const torch::optim::Optimizer& optimizer) {
  std::vector<std::size_t> sizes;
  for (const auto& group : optimizer.param_groups()) sizes.push_back(group.params().size());
  return sizes;
}

void check_group_sizes(const c10::impl::GenericList& groups, const std::vector<std::size_t>& sizes) {
  if (groups.size() != sizes.size()) {
    throw CheckpointError("the checkpoint has " + std::to_string(groups.size()) +
                          " parameter groups but the optimizer " + std::to_string(sizes.size()));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto saved = groups.get(i).toGenericDict().at(kParams).toListRef().size();
    if (saved == sizes[i]) continue;
    throw CheckpointError("parameter group " + std::to_string(i) + " has " + std::to_string(saved) +
                          " parameters in the checkpoint but " + std::to_string(sizes[i]) + " in the optimizer");
  }
}

c10::IValue optimizer_state(const torch::optim::Optimizer& optimizer, StateTensors tensors) {
  if (const auto* kind = known_kind_of(optimizer)) return state_of_kind(optimizer, *kind, tensors);
  return state_by_archive(optimizer);
}

void load_optimizer_state(torch::optim::Optimizer& optimizer, const c10::IValue& state) {
  load_state(optimizer, state, /*takes=*/false);
}

void load_optimizer_state(torch::optim::Optimizer& optimizer, c10::IValue&& state) {
  const auto given = std::move(state);
  load_state(optimizer, given, /*takes=*/true);
}

}  // namespace taas
