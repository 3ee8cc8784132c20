#include "training/ddp/module_tensors.hpp"

#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <unordered_set>

#include "taas/error.hpp"

namespace taas {
namespace {

using NamedTensorDict = torch::OrderedDict<std::string, at::Tensor>;

std::vector<NamedTensor> all_but(const NamedTensorDict& tensors, const IgnoredNames& ignored) {
  std::vector<NamedTensor> kept;
  for (const auto& item : tensors) {
    if (item.value().defined() && !ignored.contains(item.key())) kept.emplace_back(item.key(), item.value());
  }
  return kept;
}

}  // namespace

std::vector<NamedTensor> named_parameters_of(const torch::nn::Module& module, const IgnoredNames& ignored) {
  return all_but(module.named_parameters(), ignored);
}

std::vector<NamedTensor> named_buffers_of(const torch::nn::Module& module, const IgnoredNames& ignored) {
  return all_but(module.named_buffers(), ignored);
}

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

std::vector<NamedTensor> trained_parameters(const torch::nn::Module& module, const IgnoredNames& ignored) {
  auto parameters = named_parameters_of(module, ignored);
  std::unordered_set<const at::TensorImpl*> seen;
  std::erase_if(parameters, [&](const NamedTensor& named) {
    return !named.second.requires_grad() || !seen.insert(named.second.unsafeGetTensorImpl()).second;
  });
  return parameters;
}

std::vector<bool> expect_sparse(const torch::nn::Module& module, const std::vector<NamedTensor>& parameters) {
  std::unordered_set<const at::TensorImpl*> sparse;
  for (const auto& part : module.modules()) {
    const auto* embedding = part->as<torch::nn::EmbeddingImpl>();
    if (embedding && embedding->options.sparse()) sparse.insert(embedding->weight.unsafeGetTensorImpl());
    const auto* bag = part->as<torch::nn::EmbeddingBagImpl>();
    if (bag && bag->options.sparse()) sparse.insert(bag->weight.unsafeGetTensorImpl());
  }
  std::vector<bool> expected;
  for (const auto& [name, tensor] : parameters) expected.push_back(sparse.contains(tensor.unsafeGetTensorImpl()));
  return expected;
}

void check_names(const torch::nn::Module& module, const std::vector<std::string>& names, const std::string& option) {
  if (names.empty()) return;
  const auto parameters = module.named_parameters();
  const auto buffers = module.named_buffers();
  for (const auto& name : names) {
    if (parameters.contains(name) || buffers.contains(name)) continue;
    throw InvalidArgument(option + " names " + name + ", which the module does not have: see named_parameters()");
  }
}

bool on_one_device(const std::vector<NamedTensor>& parameters) {
  return std::all_of(parameters.begin(), parameters.end(), [&](const NamedTensor& named) {
    return named.second.device() == parameters.front().second.device();
  });
}

void check_devices(const std::vector<NamedTensor>& parameters, c10::Device group_device) {
  const bool several = !on_one_device(parameters);
  for (const auto& [name, tensor] : parameters) {
    const auto device = tensor.device();
    if (several ? device.type() == group_device.type() : device == group_device) continue;
    throw InvalidArgument("parameter " + name + " is on " + device.str() + " but this group works on " +
                          group_device.str() +
                          (several ? ": a module on several devices has to be on devices of that kind alone"
                                   : ": move the module there first, with module->to(group.device())"));
  }
}

}  // namespace taas
