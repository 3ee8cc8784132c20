#pragma once

#include <torch/nn/module.h>

#include <set>
#include <string>
#include <vector>

#include "taas/process_group.hpp"
#include "training/ddp/parameter_check.hpp"

namespace taas {

/// Names of parameters and buffers that the wrapper leaves alone.
using IgnoredNames = std::set<std::string>;

/// Those that need a gradient: each once, by its first name, in the order of definition, which is what Python's wrapper
/// gives its reducer.
std::vector<NamedTensor> trained_parameters(const torch::nn::Module& module, const IgnoredNames& ignored);
/// For each of `parameters`: whether it is of an embedding with sparse gradients.
std::vector<bool> expect_sparse(const torch::nn::Module& module, const std::vector<NamedTensor>& parameters);
std::vector<NamedTensor> named_parameters_of(const torch::nn::Module& module, const IgnoredNames& ignored);
std::vector<NamedTensor> named_buffers_of(const torch::nn::Module& module, const IgnoredNames& ignored);
std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& named);

/// Throws InvalidArgument for a name that the module does not have.
void check_names(const torch::nn::Module& module, const std::vector<std::string>& names, const std::string& option);
/// Parameters are on the group's device, or spread over several of its kind: the reducer's buckets are of one device
/// each. Throws InvalidArgument.
void check_devices(const std::vector<NamedTensor>& parameters, c10::Device group_device);
bool on_one_device(const std::vector<NamedTensor>& parameters);

}  // namespace taas
