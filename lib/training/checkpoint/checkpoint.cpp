#include "taas/checkpoint.hpp"

#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/log/log_line.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"
#include "taas/error.hpp"
#include "taas/file.hpp"
#include "taas/random_state.hpp"
#include "training/agreement/rank_texts.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

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
  all.insert("random", checkpoint.random.isNone() ? random_state() : checkpoint.random);
  return all;
}

bool is_state_dict(const c10::impl::GenericDict& dict) {
  return !dict.empty() && std::all_of(dict.begin(), dict.end(), [](const auto& entry) {
    return entry.key().isString() && entry.value().isTensor();
  });
}

std::string keys_of(const c10::impl::GenericDict& dict) {
  constexpr std::size_t kMost = 5;
  std::string text;
  std::size_t count = 0;
  for (const auto& entry : dict) {
    if (++count > kMost) return text + ", …";
    const auto& key = entry.key();
    text += (text.empty() ? "" : ", ") + (key.isString() ? printable(valid_utf8(key.toStringRef())) : key.tagKind());
  }
  return text;
}

StateDict state_dict_from(const c10::IValue& value) {
  StateDict state;
  for (const auto& entry : value.toGenericDict()) state.emplace(entry.key().toStringRef(), entry.value().toTensor());
  return state;
}

void check_version(const c10::impl::GenericDict& all) {
  const auto version = all.at("version").toInt();
  if (version == kVersion) return;
  throw CheckpointError(" is a checkpoint of version " + std::to_string(version) + ", and this libtaas reads version " +
                        std::to_string(kVersion) + ": load it with the one that wrote it");
}

/// What to_value() makes, or a state dict of Python alone. Throws CheckpointError, with what follows the path, and
/// c10::Error where a checkpoint lacks something.
Checkpoint from_value(const c10::IValue& value) {
  if (!value.isGenericDict()) throw CheckpointError(" holds no dictionary but one " + value.tagKind());
  const auto all = value.toGenericDict();
  if (is_state_dict(all)) return {.model = state_dict_from(value)};
  const bool ours = all.contains("format") && all.at("format").isString() && all.at("format").toStringRef() == kFormat;
  if (!ours) {
    throw CheckpointError(" is neither a checkpoint of taas nor a state dict: it holds a dictionary with " +
                          (all.empty() ? "no keys" : keys_of(all)) + "; read it with load_file()");
  }
  check_version(all);
  Checkpoint checkpoint;
  checkpoint.epoch = all.at("epoch").toInt();
  checkpoint.model = state_dict_from(all.at("model"));
  checkpoint.optimizer = all.at("optimizer");
  for (const auto& entry : all.at("extra").toGenericDict())
    checkpoint.extra.emplace(entry.key().toStringRef(), entry.value());
  if (all.contains("random")) checkpoint.random = all.at("random");
  return checkpoint;
}

void log_file(const std::string& what, const std::string& path, std::size_t bytes) {
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo, what + " " + path + ", " + std::to_string(bytes) + " bytes");
}

/// Every tensor of the module that belongs to its state; one with two names is there twice.
NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

std::string describe(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + "[";
  for (auto size : tensor.sizes()) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "]";
}

void check_same_tensors(const NamedTensors& own, const StateDict& saved) {
  std::unordered_set<std::string> known;
  for (const auto& [name, tensor] : own) known.insert(name);
  for (const auto& [name, tensor] : saved)
    if (!known.contains(name)) throw CheckpointError("the model has no tensor named " + name);
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
  save_file(path, to_value(checkpoint));
  std::error_code failure;
  log_file("saved", path, std::filesystem::file_size(path, failure));
}

void save_checkpoint(const ProcessGroup& group, const std::string& path, const Checkpoint& checkpoint) {
  auto with_random = checkpoint;
  if (with_random.random.isNone()) with_random.random = random_state(group);
  std::string failure;
  try {
    if (group.rank() == 0) save_checkpoint(path, with_random);
  } catch (const CheckpointError& error) {
    failure = error.what();
  }
  failure = first_text(group, failure);
  if (!failure.empty()) throw CheckpointError(failure);
}

Checkpoint load_checkpoint(const std::string& path, const LoadOptions& options) {
  const auto value = load_file(path, options);
  try {
    auto checkpoint = from_value(value);
    std::error_code failure;
    log_file("loaded", path, std::filesystem::file_size(path, failure));
    return checkpoint;
  } catch (const CheckpointError& error) {
    throw CheckpointError(path + error.what());
  } catch (const std::exception&) {
    throw CheckpointError(path + " is a checkpoint that lacks some of what docs/cpp/training.md describes");
  }
}

StateDict state_dict(const torch::nn::Module& module, StateTensors tensors) {
  StateDict state;
  std::unordered_map<const at::TensorImpl*, at::Tensor> copies;  // one for all names of a tensor
  for (const auto& [name, tensor] : tensors_of(module)) {
    auto& given = copies[tensor.unsafeGetTensorImpl()];
    if (!given.defined()) {
      given = tensor.detach();
      if (tensors == StateTensors::kCopied) given = given.to(at::kCPU).clone(at::MemoryFormat::Contiguous);
    }
    state.emplace(name, given);
  }
  return state;
}

void load_state_dict(torch::nn::Module& module, const StateDict& state) {
  auto own = tensors_of(module);
  check_same_tensors(own, state);
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) tensor.detach().copy_(state.at(name));
}

void load_state_dict(torch::nn::Module& module, const c10::IValue& state) {
  const bool empty = state.isGenericDict() && state.toGenericDict().empty();  // of a module without parameters
  if (!empty && !(state.isGenericDict() && is_state_dict(state.toGenericDict()))) {
    throw CheckpointError("a state dict is a dictionary of tensors by name, and this is " +
                          (state.isGenericDict() ? "one with " + keys_of(state.toGenericDict()) : state.tagKind()));
  }
  load_state_dict(module, state_dict_from(state));
}

}  // namespace taas
