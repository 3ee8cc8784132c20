#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <string>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace taas {

/// Tensors by qualified name.
using StateDict = std::map<std::string, at::Tensor>;

/// What a run needs to go on. In the file it is a plain dictionary, {"format", "version", "epoch", "model",
/// "optimizer", "extra"}, that Python reads with torch.load(path, weights_only=True) and may write with torch.save.
struct Checkpoint {
  std::int64_t epoch = 0;                      ///< epochs that are done
  StateDict model{};                           ///< see module_state(); Python: dict(module.state_dict())
  c10::IValue optimizer{};                     ///< see optimizer_state(); None without one
  std::map<std::string, c10::IValue> extra{};  ///< whatever else: numbers, strings, tensors (generator states), lists
};

/// Writes `checkpoint` to `path`, whole or not at all: the file that was there stays until the new one is on disk.
/// For rank 0; the folder must exist. Throws CheckpointError, which names the path, and leaves no partial file.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Reads all of it. Tensors are on the CPU, also those that were on a GPU when Python saved them. A file that holds
/// nothing but a state dict, as torch.save(module.state_dict(), path) writes it, becomes a checkpoint with that model.
/// Throws CheckpointError, which says what it is, for a missing, cut off, damaged or foreign file, and for a version
/// that this library does not know.
Checkpoint load_checkpoint(const std::string& path);

/// What a state is made of.
enum class StateTensors {
  kCopied,  ///< copies on the CPU, which stay as they are
  /// The tensors themselves, wherever they are, as in Python: for a checkpoint that is saved at once, which then takes
  /// no memory of its own. What changes them later changes the state.
  kShared,
};

/// Parameters and buffers by qualified name, as in Python's Module.state_dict().
StateDict module_state(const torch::nn::Module& module, StateTensors tensors = StateTensors::kCopied);

/// Copies `state` into the module's own tensors. Throws CheckpointError, before anything is changed, when a name is
/// missing or unknown or a shape or dtype differs.
void load_module_state(torch::nn::Module& module, const StateDict& state);

/// What an optimizer remembers, as in Python's Optimizer.state_dict(): {"state": {index: {name: value}},
/// "param_groups": [{"lr": …, "params": [index, …]}]}. For libtorch's SGD, Adam, AdamW, RMSprop and Adagrad, and for
/// Adadelta. Throws CheckpointError for others, which torch::save() saves.
c10::IValue optimizer_state(const torch::optim::Optimizer& optimizer, StateTensors tensors = StateTensors::kCopied);

/// Copies it into an optimizer of the same kind over the same parameters, on their device. Throws CheckpointError,
/// before anything is changed, when groups, parameters or shapes differ.
void load_optimizer_state(torch::optim::Optimizer& optimizer, const c10::IValue& state);

/// The same with std::move(checkpoint.optimizer): tensors that are on the right device are taken over without a copy.
void load_optimizer_state(torch::optim::Optimizer& optimizer, c10::IValue&& state);

}  // namespace taas
