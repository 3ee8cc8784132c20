#include <torch/optim/optimizer.h>

#include <string>
#include <unordered_map>

#include "taas/error.hpp"
#include "taas/recordable_optimizer.hpp"
#include "taas/unique_tensors.hpp"
#include "training/optim/parameter_lists.hpp"

namespace taas {
namespace {

using ParamGroups = std::vector<torch::optim::OptimizerParamGroup>;
using GroupOfTensor = std::unordered_map<const at::TensorImpl*, std::size_t>;

/// The group at `index` with each parameter once, which are noted in `known`.
torch::optim::OptimizerParamGroup unique_group(const torch::optim::OptimizerParamGroup& group, std::size_t index,
                                               GroupOfTensor& known) {
  auto parameters = unique_tensors(group.params());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto [entry, is_new] = known.emplace(parameters[i].unsafeGetTensorImpl(), index);
    if (is_new) continue;
    throw InvalidArgument("parameter " + std::to_string(i) + " of parameter group " + std::to_string(index) +
                          " is in group " + std::to_string(entry->second) +
                          " as well: give a parameter, also one with two names, to one group alone");
  }
  torch::optim::OptimizerParamGroup result(std::move(parameters));
  if (group.has_options()) result.set_options(group.options().clone());
  return result;
}

}  // namespace

ParamGroups unique_groups(const ParamGroups& groups) {
  ParamGroups all;
  GroupOfTensor known;
  for (const auto& group : groups) all.push_back(unique_group(group, all.size(), known));
  return all;
}

namespace detail {

void add_param_group(torch::optim::Optimizer& optimizer, const torch::optim::OptimizerParamGroup& group) {
  GroupOfTensor known;
  const auto& groups = optimizer.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const auto& parameter : groups[i].params()) known.emplace(parameter.unsafeGetTensorImpl(), i);
  }
  optimizer.add_param_group(unique_group(group, groups.size(), known));
}

/// libtorch's detaches each gradient in place, which views refuse.
void zero_gradients(torch::optim::Optimizer& optimizer, bool set_to_none) {
  for (auto& group : optimizer.param_groups()) {
    for (auto& parameter : group.params()) {
      auto& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      if (set_to_none) {
        gradient.reset();
        continue;
      }
      if (gradient.requires_grad()) gradient = gradient.detach();  // of a backward with create_graph
      gradient.zero_();
    }
  }
}

}  // namespace detail
}  // namespace taas
