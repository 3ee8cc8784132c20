#pragma once

#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include "taas/process_group.hpp"

namespace taas {

using NamedTensor = std::pair<std::string, at::Tensor>;

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named);
/// Those that need a gradient: each once, by its first name, in the order of definition, which is what Python's wrapper
/// gives its reducer.
std::vector<NamedTensor> trained_parameters(const torch::nn::Module& module);
/// For each of `parameters`: whether it is of an embedding with sparse gradients.
std::vector<bool> expect_sparse(const torch::nn::Module& module, const std::vector<NamedTensor>& parameters);
bool on_one_device(const std::vector<NamedTensor>& parameters);

/// Parameters are on the group's device, or spread over several of its kind: the reducer's buckets are of one device
/// each. Throws InvalidArgument.
void check_devices(const std::vector<NamedTensor>& parameters, c10::Device group_device);
/// Throws InvalidArgument on every rank, with the same text, when the parameters of some rank differ from those of rank
/// 0 in number, name, shape, dtype or strides. A collective.
void check_same_parameters(const ProcessGroup& group, const std::vector<NamedTensor>& parameters);

}  // namespace taas
