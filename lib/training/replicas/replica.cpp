#include "training/replicas/replica.hpp"

#include <ATen/ATen.h>

#include <optional>
#include <unordered_set>

#include "taas/error.hpp"
#include "training/ddp/keep_versions.hpp"

namespace taas {
namespace {

bool alike(const at::Tensor& one, const at::Tensor& other) {
  return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type();
}

void check_alike(const std::vector<at::Tensor>& copies, const std::vector<at::Tensor>& originals, const char* kind) {
  bool same = copies.size() == originals.size();
  for (std::size_t i = 0; same && i < copies.size(); ++i) same = alike(copies[i], originals[i]);
  if (!same) {
    throw InvalidArgument(std::string("a replica has other ") + kind +
                          " than the module itself: make replicas with the same options");
  }
}

/// What is in place stays: members of the module share the tensor.
void write(const at::Tensor& to, const at::Tensor& from, c10::Device device) {
  if (alike(to, from)) {
    constexpr bool kNonBlocking = true;
    to.copy_(from, kNonBlocking);
  } else {
    to.set_data(from.to(device, from.scalar_type(), /*non_blocking=*/true, /*copy=*/true));
  }
}

/// A module sets the mode of all below it, so the modes are set from the top.
void copy_modes(const torch::nn::Module& from, torch::nn::Module& to) {
  const auto originals = from.modules();
  const auto copies = to.modules();
  for (std::size_t i = 0; i < copies.size() && i < originals.size(); ++i) {
    if (copies[i]->is_training() != originals[i]->is_training()) copies[i]->train(originals[i]->is_training());
  }
}

}  // namespace

ModuleTensors tensors_of_module(const torch::nn::Module& module) {
  ModuleTensors tensors;
  std::unordered_set<const at::TensorImpl*> seen;
  const auto is_new = [&](const at::Tensor& tensor) {
    return tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second;
  };
  for (const auto& item : module.named_parameters()) {
    if (!is_new(item.value())) continue;
    tensors.parameters.push_back(item.value());
    tensors.parameter_names.push_back(item.key());
  }
  for (const auto& item : module.named_buffers()) {
    if (is_new(item.value())) tensors.buffers.push_back(item.value());
  }
  return tensors;
}

Replica::Replica(std::shared_ptr<torch::nn::Module> module, const ModuleTensors& master, c10::Device device)
    : module_(std::move(module)), device_(device), versions_(master.parameters.size(), -1) {
  module_->to(device_);
  tensors_ = tensors_of_module(*module_);
  check_alike(tensors_.parameters, master.parameters, "parameters");
  check_alike(tensors_.buffers, master.buffers, "buffers");
  for (const auto& parameter : tensors_.parameters) parameter.set_requires_grad(false);
}

/// As with the module alone, only a change that has a new version spoils a backward that is still to come.
void Replica::copy_parameter(std::size_t index, const at::Tensor& from) {
  const std::vector<at::Tensor> copy{tensors_.parameters[index]};
  std::optional<KeepVersions> keep;
  if (versions_[index] == from._version()) keep.emplace(copy);
  write(copy.front(), from.detach(), device_);
  versions_[index] = from._version();
}

void Replica::refresh(const torch::nn::Module& master_module, const ModuleTensors& master) {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < master.parameters.size(); ++i) copy_parameter(i, master.parameters[i]);
  {
    KeepVersions versions(tensors_.buffers);
    for (std::size_t i = 0; i < master.buffers.size(); ++i) write(tensors_.buffers[i], master.buffers[i], device_);
  }
  copy_modes(master_module, *module_);
}

}  // namespace taas
