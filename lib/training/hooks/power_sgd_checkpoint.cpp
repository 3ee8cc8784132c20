#include <sstream>
#include <string>

#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/hooks/power_sgd_state.hpp"

// With the names that Python's PowerSGDState has for what it pickles.

namespace taas {
namespace {

using Memories = std::map<std::size_t, PowerSGDState::Impl::Memory>;

c10::impl::GenericDict tensors_of(const Memories& memories, at::Tensor PowerSGDState::Impl::Memory::*which) {
  auto tensors = plain_dict();
  for (const auto& [bucket, memory] : memories) {
    const auto& tensor = memory.*which;
    if (tensor.defined()) tensors.insert(static_cast<std::int64_t>(bucket), tensor.detach().cpu().clone());
  }
  return tensors;
}

void read_tensors(const c10::IValue& from, Memories& memories, at::Tensor PowerSGDState::Impl::Memory::*which) {
  for (const auto& entry : from.toGenericDict()) {
    memories[static_cast<std::size_t>(entry.key().toInt())].*which = entry.value().toTensor().clone();
  }
}

}  // namespace

c10::IValue PowerSGDState::state() const {
  auto state = plain_dict();
  state.insert("iter", impl_->iteration);
  state.insert("total_numel_before_compression", impl_->numel_before);
  state.insert("total_numel_after_compression", impl_->numel_after);
  state.insert("error_dict", tensors_of(impl_->memories, &Impl::Memory::error));
  state.insert("p_memory_dict", tensors_of(impl_->memories, &Impl::Memory::p));
  state.insert("q_memory_dict", tensors_of(impl_->memories, &Impl::Memory::q));
  state.insert("rng", impl_->random.text());
  return state;
}

void PowerSGDState::load_state(const c10::IValue& state) {
  try {
    const auto fields = state.toGenericDict();
    Memories memories;
    read_tensors(fields.at("error_dict"), memories, &Impl::Memory::error);
    read_tensors(fields.at("p_memory_dict"), memories, &Impl::Memory::p);
    read_tensors(fields.at("q_memory_dict"), memories, &Impl::Memory::q);
    const auto iteration = fields.at("iter").toInt();
    const auto before = fields.at("total_numel_before_compression").toInt();
    const auto after = fields.at("total_numel_after_compression").toInt();
    auto random = NumpyRandomState::of(fields.at("rng").toStringRef());
    impl_->resume(std::move(memories), random, iteration);
    impl_->numel_before = before;
    impl_->numel_after = after;
  } catch (const std::exception&) {
    throw CheckpointError("this is not the state of PowerSGD: give load_state() what state() has given on this rank");
  }
}

}  // namespace taas
