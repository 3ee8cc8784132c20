#include "training/ddp/module_tensors.hpp"

#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "taas/error.hpp"
#include "training/group/rank_texts.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {
namespace {

using Lines = std::vector<std::string>;

/// "conv1.weight (32, 1, 3, 3) Float, strides (9, 9, 3, 1)", one for each parameter.
Lines describe_parameters(const std::vector<NamedTensor>& parameters) {
  Lines lines;
  for (const auto& [name, tensor] : parameters) {
    lines.push_back(name + " " + describe(tensor) + ", strides " + describe_shape(tensor.strides()));
  }
  return lines;
}

std::string in_one_text(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// What is different in `theirs` against `first`: empty when nothing is.
std::string first_difference(const Lines& first, const Lines& theirs, int rank) {
  const auto on_rank = " on rank " + std::to_string(rank);
  for (std::size_t i = 0; i < std::min(first.size(), theirs.size()); ++i) {
    if (first[i] != theirs[i]) {
      return "parameters differ between ranks: " + first[i] + " on rank 0, but " + theirs[i] + on_rank;
    }
  }
  if (first.size() == theirs.size()) return "";
  const auto& longer = first.size() > theirs.size() ? first : theirs;
  return "parameters differ between ranks: " + std::to_string(first.size()) + " on rank 0, but " +
         std::to_string(theirs.size()) + on_rank + "; the first of one side alone is " +
         longer[std::min(first.size(), theirs.size())];
}

}  // namespace

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(named.size());
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

std::vector<NamedTensor> trained_parameters(const torch::nn::Module& module) {
  std::vector<NamedTensor> trained;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    const auto& parameter = item.value();
    if (!parameter.defined() || !parameter.requires_grad()) continue;
    if (seen.insert(parameter.unsafeGetTensorImpl()).second) trained.emplace_back(item.key(), parameter);
  }
  return trained;
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

void check_same_parameters(const ProcessGroup& group, const std::vector<NamedTensor>& parameters) {
  const auto mine = describe_parameters(parameters);
  const auto first = lines_of(broadcast_text(group, in_one_text(mine)));
  const auto difference = first_text(group, first_difference(first, mine, group.rank()));
  if (!difference.empty()) throw InvalidArgument(difference);
}

}  // namespace taas
