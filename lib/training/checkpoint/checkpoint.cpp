#include "taas/checkpoint.hpp"

#include <torch/nn/module.h>
#include <torch/utils.h>

#include <vector>

#include "base/files.hpp"
#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/atomic_file.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

constexpr const char* kFormat = "taas checkpoint";
constexpr std::int64_t kVersion = 1;

c10::IValue to_value(const Checkpoint& checkpoint) {
  auto model = plain_dict();
  for (const auto& [name, tensor] : checkpoint.model) model.insert(name, tensor);
  auto extra = plain_dict();
  for (const auto& [name, value] : checkpoint.extra) extra.insert(name, value);
  auto all = plain_dict();
  all.insert("format", kFormat);
  all.insert("version", kVersion);
  all.insert("epoch", checkpoint.epoch);
  all.insert("model", model);
  all.insert("optimizer", checkpoint.optimizer);
  all.insert("extra", extra);
  return all;
}

/// Throws on anything else than what to_value() makes; the caller says which file it was.
Checkpoint from_value(const c10::IValue& value) {
  auto all = value.toGenericDict();
  TORCH_CHECK(all.at("format").toStringRef() == kFormat, "another format");
  Checkpoint checkpoint;
  checkpoint.epoch = all.at("epoch").toInt();
  for (const auto& entry : all.at("model").toGenericDict())
    checkpoint.model.emplace(entry.key().toStringRef(), entry.value().toTensor());
  checkpoint.optimizer = all.at("optimizer");
  for (const auto& entry : all.at("extra").toGenericDict())
    checkpoint.extra.emplace(entry.key().toStringRef(), entry.value());
  return checkpoint;
}

void log_file(const std::string& what, const std::string& path, std::size_t bytes) {
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo, what + " " + path + ", " + std::to_string(bytes) + " bytes");
}

/// Every tensor of the module that belongs to its state, by name; they share memory with the module.
StateDict tensors_of(const torch::nn::Module& module) {
  StateDict tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value().detach());
  return tensors;
}

std::string describe(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + "[";
  for (auto size : tensor.sizes()) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "]";
}

void check_same_tensors(const StateDict& own, const StateDict& saved) {
  for (const auto& [name, tensor] : saved)
    if (!own.contains(name)) throw CheckpointError("the model has no tensor named " + name);
  for (const auto& [name, tensor] : own) {
    auto found = saved.find(name);
    if (found == saved.end()) throw CheckpointError("the checkpoint has no tensor named " + name);
    auto mine = describe(tensor), theirs = describe(found->second);
    if (mine != theirs)
      throw CheckpointError(name + " is " + theirs + " in the checkpoint but " + mine + " in the model");
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const auto bytes = pickle(to_value(checkpoint));
  write_file_atomically(path, bytes);
  log_file("saved", path, bytes.size());
}

Checkpoint load_checkpoint(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) throw CheckpointError(bytes.error().message);
  try {
    auto checkpoint = from_value(unpickle(*bytes));
    log_file("loaded", path, bytes->size());
    return checkpoint;
  } catch (const std::exception&) {  // torch's own words are many lines about zip and pickle
    throw CheckpointError(path + " is cut off, damaged or no checkpoint of taas: give another file, or remove it");
  }
}

StateDict module_state(const torch::nn::Module& module) {
  StateDict copies;
  for (const auto& [name, tensor] : tensors_of(module))
    copies.emplace(name, tensor.to(at::kCPU).clone(at::MemoryFormat::Contiguous));
  return copies;
}

void load_module_state(torch::nn::Module& module, const StateDict& state) {
  auto own = tensors_of(module);
  check_same_tensors(own, state);
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) tensor.copy_(state.at(name));
}

}  // namespace taas
