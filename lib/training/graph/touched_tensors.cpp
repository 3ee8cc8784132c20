#include "training/graph/touched_tensors.hpp"

#include <ATen/Functions.h>
#include <ATen/core/function_schema.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace taas::detail {

struct TouchedTensors::Impl {
  c10::DeviceType device;
  std::function<void(const at::Tensor&)> first_seen;
  at::CallbackHandle handle = 0;
  std::mutex mutex;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> touched;
  std::unordered_map<const c10::StorageImpl*, std::size_t> given_first;  ///< by what was given as well, how many
  std::unordered_set<const c10::StorageImpl*> made;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>
      known;  ///< so that no other one gets the address of one of these

  void given(const at::Tensor& tensor, bool may_be_written) {
    const auto* storage = storage_of(tensor);
    std::unique_lock lock(mutex);
    if (storage == nullptr || made.contains(storage)) return;
    if (given_first.try_emplace(storage, given_first.size()).second)
      known.push_back(tensor.storage().getWeakStorageImpl());
    if (!may_be_written || !touched.try_emplace(storage, tensor).second) return;
    lock.unlock();
    const at::DisableRecordFunctionGuard of_its_own;
    if (first_seen) first_seen(tensor);
  }

  /// By an operator that began when so many had been given. It may have had others write to what it made.
  void returned(const at::Tensor& tensor, std::size_t given_before) {
    const auto* storage = storage_of(tensor);
    std::scoped_lock lock(mutex);
    if (storage == nullptr) return;
    auto found = given_first.find(storage);
    if (found != given_first.end() && found->second < given_before) return;
    if (!made.insert(storage).second) return;
    touched.erase(storage);
    known.push_back(tensor.storage().getWeakStorageImpl());
  }

  std::size_t count_given() {
    std::scoped_lock lock(mutex);
    return given_first.size();
  }

  const c10::StorageImpl* storage_of(const at::Tensor& tensor) const {
    const bool counts =
        tensor.defined() && tensor.device().type() == device && tensor.has_storage() && tensor.storage().nbytes() > 0;
    return counts ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  }
};

namespace {

/// Memory that an operator takes for another one that it calls was not seen being made. Nothing else is left of it.
bool is_held_elsewhere(const at::Tensor& tensor) { return tensor.use_count() > 1 || tensor.storage().use_count() > 1; }

/// All that there are. Operators of other threads may still be in a callback when one ends.
struct InUse {
  std::mutex mutex;
  std::vector<std::shared_ptr<TouchedTensors::Impl>> all;
  at::CallbackHandle handle = 0;
};

InUse& in_use() {
  static InUse* const kept = new InUse;  // to the end of all threads
  return *kept;
}

std::vector<std::shared_ptr<TouchedTensors::Impl>> all_in_use() {
  std::scoped_lock lock(in_use().mutex);
  return in_use().all;
}

template <class Do>
void for_each_tensor(const c10::IValue& value, const Do& what) {
  if (value.isTensor()) {
    what(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& each : value.toTensorVector()) what(each);
  } else if (value.isList()) {
    for (const c10::IValue& each : value.toListRef()) for_each_tensor(each, what);
  }
}

/// Whether an operator may write to this argument. torch's own say so, but for the statistics of norms; others may not.
bool may_write(const std::optional<c10::FunctionSchema>& schema, std::size_t argument) {
  if (!schema || argument >= schema->arguments().size()) return true;
  const auto& name = schema->name();
  if (!name.starts_with("aten::") || name.find("_norm") != name.npos) return true;
  const auto* alias = schema->arguments()[argument].alias_info();
  return alias != nullptr && alias->isWrite();
}

/// For each that is in use how many tensors had been given when the operator began, its own included.
struct Begun : at::ObserverContext {
  std::vector<std::pair<std::shared_ptr<TouchedTensors::Impl>, std::size_t>> given;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
  const auto schema = call.operator_schema();
  const auto inputs = call.inputs();
  auto begun = std::make_unique<Begun>();
  for (const auto& noted : all_in_use()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool written = may_write(schema, i);
      for_each_tensor(inputs[i], [&](const auto& each) { noted->given(each, written); });
    }
    begun->given.emplace_back(noted, noted->count_given());
  }
  return begun;
}

void end(const at::RecordFunction& call, at::ObserverContext* context) {
  for (const auto& [noted, given] : static_cast<const Begun*>(context)->given) {
    for (const auto& value : call.outputs()) {
      for_each_tensor(value, [&, before = given, &impl = *noted](const auto& each) { impl.returned(each, before); });
    }
  }
}

}  // namespace

TouchedTensors::TouchedTensors(c10::DeviceType device, std::function<void(const at::Tensor&)> first_seen)
    : impl_(std::make_shared<Impl>()) {
  impl_->device = device;
  impl_->first_seen = std::move(first_seen);
  auto& used = in_use();
  std::scoped_lock lock(used.mutex);
  used.all.push_back(impl_);
  if (used.all.size() > 1) return;
  used.handle = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end)
                                          .needsInputs(true)
                                          .needsOutputs(true)
                                          .scopes({at::RecordScope::FUNCTION}));
}

TouchedTensors::~TouchedTensors() {
  auto& used = in_use();
  std::scoped_lock lock(used.mutex);
  std::erase(used.all, impl_);
  if (used.all.empty()) at::removeCallback(used.handle);
}

std::vector<at::Tensor> TouchedTensors::tensors() const {
  std::scoped_lock lock(impl_->mutex);
  std::vector<at::Tensor> tensors;
  for (const auto& [storage, tensor] : impl_->touched) {
    if (is_held_elsewhere(tensor)) tensors.push_back(tensor);
  }
  return tensors;
}

at::Tensor whole_memory_of(const at::Tensor& tensor) {
  const auto count = static_cast<std::int64_t>(tensor.storage().nbytes() / tensor.element_size());
  return at::empty({0}, tensor.options().requires_grad(false)).set_(tensor.storage(), 0, {count}, {1});
}

}  // namespace taas::detail
