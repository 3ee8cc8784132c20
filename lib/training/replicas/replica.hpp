#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace taas {

/// The tensors of a module in the order of definition, each once: the same order in every module of its kind.
struct ModuleTensors {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  std::vector<std::string> parameter_names;
};

ModuleTensors tensors_of_module(const torch::nn::Module& module);

/// A copy of a module on a device of its own. Its parameters are no leaves: their gradients belong to the master's.
class Replica {
 public:
  /// Throws InvalidArgument unless `module` has parameters and buffers like those of `master`.
  Replica(std::shared_ptr<torch::nn::Module> module, const ModuleTensors& master, c10::Device device);

  /// Copies all parameters and buffers, and whether each part of the module is in training mode. Comparing versions
  /// would not do: libtorch's optimizers write through data() and batch norm in its kernel, both without a new one.
  void refresh(const torch::nn::Module& master_module, const ModuleTensors& master);

  const std::vector<at::Tensor>& parameters() const { return tensors_.parameters; }

 private:
  void copy_parameter(std::size_t index, const at::Tensor& from);

  std::shared_ptr<torch::nn::Module> module_;
  c10::Device device_;
  ModuleTensors tensors_;
  std::vector<std::int64_t> versions_;  // of the master's parameters when they were copied; -1: not yet
};

}  // namespace taas
