#include "taas/checkpoint.hpp"

#include <torch/nn/module.h>
#include <torch/utils.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/checkpoint/atomic_file.hpp"
#include "training/checkpoint/foreign_file.hpp"
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
    text += (text.empty() ? "" : ", ") + (key.isString() ? key.toStringRef() : key.tagKind());
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
                          (all.empty() ? "no keys" : keys_of(all)) +
                          "; in Python, save the state dict alone, or what docs/cpp/training.md describes");
  }
  check_version(all);
  Checkpoint checkpoint;
  checkpoint.epoch = all.at("epoch").toInt();
  checkpoint.model = state_dict_from(all.at("model"));
  checkpoint.optimizer = all.at("optimizer");
  for (const auto& entry : all.at("extra").toGenericDict())
    checkpoint.extra.emplace(entry.key().toStringRef(), entry.value());
  return checkpoint;
}

void log_file(const std::string& what, const std::string& path, std::size_t bytes) {
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo, what + " " + path + ", " + std::to_string(bytes) + " bytes");
}

void log_problem(const std::string& path, const std::exception& error) {
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo, "cannot load " + path + ": " + one_line(error));
}

/// Every tensor of the module that belongs to its state, by name; they share memory with the module.
StateDict tensors_of(const torch::nn::Module& module) {
  StateDict tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) tensors.emplace(item.key(), item.value().detach());
  return tensors;
}

std::string form_text(const at::Tensor& tensor) {
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
    auto mine = form_text(tensor), theirs = form_text(found->second);
    if (mine != theirs)
      throw CheckpointError(name + " is " + theirs + " in the checkpoint but " + mine + " in the model");
  }
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  AtomicFile file(path);
  pickle(to_value(checkpoint), [&file](std::string_view bytes) { file.write(bytes); });
  file.publish();
  log_file("saved", path, file.size());
}

Checkpoint load_checkpoint(const std::string& path) {
  std::error_code failure;
  const auto size = std::filesystem::file_size(path, failure);
  if (failure) throw CheckpointError("cannot read " + path + ": " + failure.message());
  try {
    auto checkpoint = from_value(unpickle(path));
    log_file("loaded", path, size);
    return checkpoint;
  } catch (const CheckpointError& error) {
    throw CheckpointError(path + error.what());
  } catch (const UnknownObject& unknown) {
    throw CheckpointError(path + " holds " + unknown.what +
                          ": in Python, save state dicts, numbers, strings and lists only");
  } catch (const std::exception& error) {  // torch's own words are many lines about zip and pickle
    log_problem(path, error);
    throw CheckpointError(path + explain_unreadable(path));
  }
}

StateDict module_state(const torch::nn::Module& module, StateTensors tensors) {
  auto state = tensors_of(module);
  if (tensors == StateTensors::kShared) return state;
  for (auto& [name, tensor] : state) tensor = tensor.to(at::kCPU).clone(at::MemoryFormat::Contiguous);
  return state;
}

void load_module_state(torch::nn::Module& module, const StateDict& state) {
  auto own = tensors_of(module);
  check_same_tensors(own, state);
  torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : own) tensor.copy_(state.at(name));
}

}  // namespace taas
