#include "training/group/group_setup.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupWrapper.hpp>
#include <utility>

#include "training/backend/backend_choice.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/nccl.hpp"
#include "training/group/named_backend.hpp"

namespace taas {
namespace {

using NativeGroup = c10d::ProcessGroup;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

/// Not GLOO: c10d's logger takes that for a ProcessGroupGloo, without a question.
constexpr auto kWrappedGloo = NativeGroup::BackendType::CUSTOM;

BackendArguments arguments_of(const ProcessGroupState& state, const char* purpose = nullptr) {
  auto store = state.store;
  if (purpose) store = c10::make_intrusive<c10d::PrefixStore>(purpose, store);
  return {.store = std::move(store),
          .rank = state.environment.rank,
          .world_size = state.environment.world_size,
          .timeout = state.timeout,
          .group_uid = state.name == kFirstGroup ? "0" : state.name};
}

BackendPointer gloo_of(const ProcessGroupState& state, const char* purpose = nullptr) {
  const auto& master = state.environment.master_address;
  return make_gloo(arguments_of(state, purpose), master.empty() ? "127.0.0.1" : master);
}

/// With torch's own comparison of what the ranks are about to do, over a gloo group of its own.
BackendPointer compared(const ProcessGroupState& state, const BackendPointer& backend, const char* purpose) {
  if (!state.check_collectives) return backend;
  return c10::make_intrusive<c10d::ProcessGroupWrapper>(backend, gloo_of(state, purpose));
}

/// Tensors on a GPU, too, as in Python.
void set_gloo(NativeGroup& group, const BackendPointer& gloo) {
  group.setDefaultBackend(kWrappedGloo);
  group.setBackend(c10::DeviceType::CPU, kWrappedGloo, gloo);
  group.setBackend(c10::DeviceType::CUDA, kWrappedGloo, gloo);
}

/// CPU tensors go through gloo in an nccl group too, as in Python.
void fill(ProcessGroupState& state) {
  auto group = c10::make_intrusive<NativeGroup>(state.store, state.environment.rank, state.environment.world_size);
  auto gloo = with_named_errors(compared(state, gloo_of(state), "compared"), state.watch);
  gloo->setGroupUid(arguments_of(state).group_uid);
  if (state.backend == kNcclName) {
    state.device = gpu_of(state.environment);
    use_device(state.device);
    group->setBoundDeviceId(state.device);
    group->setDefaultBackend(NativeGroup::BackendType::NCCL);
    auto nccl = make_nccl(arguments_of(state), state.device.index());
    group->setBackend(c10::DeviceType::CUDA, NativeGroup::BackendType::NCCL, compared(state, nccl, "compared on GPUs"));
    group->setBackend(c10::DeviceType::CPU, kWrappedGloo, gloo);
  } else {
    set_gloo(*group, gloo);
  }
  group->setGroupName(state.name);
  state.group = std::move(group);
}

}  // namespace

c10::Device gpu_of(const Environment& environment) {
  return c10::Device(c10::DeviceType::CUDA,
                     static_cast<c10::DeviceIndex>(
                         gpu_index(environment.local_rank, cuda_device_count(), environment.devices_per_rank)));
}

void use_device(c10::Device gpu) { c10::impl::VirtualGuardImpl(gpu.type()).setDevice(gpu); }

void set_up(ProcessGroupState& state) {
  communicating("cannot set up " + state.backend, [&] { fill(state); });
}

c10::intrusive_ptr<c10d::ProcessGroup> summing_by(const ProcessGroupState& state, std::shared_ptr<SharedSums> sums) {
  const auto backend = with_shared_sums(state.group->getBackend(c10::DeviceType::CPU), std::move(sums));
  auto group = c10::make_intrusive<NativeGroup>(state.store, state.environment.rank, state.environment.world_size);
  set_gloo(*group, backend);
  group->setGroupName(state.name);
  return group;
}

}  // namespace taas
