#include "training/zero/trained_parameters.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "taas/error.hpp"
#include "training/ddp/parameter_check.hpp"

namespace taas {

std::vector<TrainedParameter> trained_of(const ZeroOptimizer::Groups& groups, const std::vector<at::Tensor>& order) {
  std::vector<TrainedParameter> trained;
  std::size_t index = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const auto& parameter : groups[g].params()) {
      if (parameter.requires_grad()) trained.push_back({parameter, index, g});
      ++index;
    }
  }
  std::unordered_map<const at::TensorImpl*, std::size_t> places;
  for (const auto& parameter : order) places.emplace(parameter.unsafeGetTensorImpl(), places.size());
  const auto place_of = [&](const TrainedParameter& one) {
    const auto found = places.find(one.tensor.unsafeGetTensorImpl());
    return found == places.end() ? places.size() : found->second;
  };
  std::stable_sort(trained.begin(), trained.end(),
                   [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  return trained;
}

std::vector<at::Tensor> trained_tensors(const std::vector<TrainedParameter>& trained) {
  std::vector<at::Tensor> tensors;
  for (const auto& one : trained) tensors.push_back(one.tensor);
  return tensors;
}

StateMap map_of(const ZeroOptimizer::Groups& groups, const std::vector<TrainedParameter>& trained) {
  StateMap map;
  std::size_t index = 0;
  for (const auto& group : groups) {
    auto& indices = map.groups.emplace_back();
    for (std::size_t i = 0; i < group.params().size(); ++i) indices.push_back(index++);
  }
  for (const auto& one : trained) map.index_of.push_back(one.index);
  return map;
}

std::vector<at::Tensor> checked(const ProcessGroup& group, std::vector<at::Tensor> parameters,
                                const ZeroOptions& options) {
  if (options.stage != 1 && options.stage != 2) {
    throw InvalidArgument("stage must be 1 or 2, not " + std::to_string(options.stage));
  }
  if (options.bucket_cap_mb && !(*options.bucket_cap_mb > 0)) {
    throw InvalidArgument("bucket_cap_mb must be above 0, not " + std::to_string(*options.bucket_cap_mb));
  }
  if (parameters.empty()) throw InvalidArgument("no parameter needs a gradient: nothing to optimize");
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    named.emplace_back("parameter " + std::to_string(i), parameters[i]);
    if (parameters[i].device() == group.device()) continue;
    throw InvalidArgument("parameter " + std::to_string(i) + " is on " + parameters[i].device().str() +
                          " but this group works on " + group.device().str() +
                          ": move the module there first, with module->to(group.device())");
  }
  if (group.native()) check_same_parameters(group, named);
  return parameters;
}

}  // namespace taas
