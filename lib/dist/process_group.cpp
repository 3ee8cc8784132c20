#include "taas/process_group.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "dist/backends.hpp"
#include "dist/c10_error.hpp"
#include "dist/nccl.hpp"
#include "dist/process_group_state.hpp"
#include "dist/rendezvous.hpp"

namespace taas {
namespace {

using Group = c10d::ProcessGroup;

constexpr const char* kGloo = "gloo";
constexpr const char* kNccl = "nccl";
/// What a rank says that leaves the choice to the others and has a GPU of its own.
constexpr const char* kEither = "either";

std::string wish(const Environment& environment, Backend backend) {
  if (backend == Backend::kNccl) return kNccl;
  if (backend == Backend::kGloo) return kGloo;
  // With one visible GPU and local rank 0 the launcher has given each rank its own (--virtual-local-rank).
  return environment.local_rank < cuda_device_count() ? kEither : kGloo;
}

/// Ranks with a choice follow the rest, so a rank without a GPU takes all to gloo; nccl asked for by name stays nccl.
std::string common_backend(const std::vector<std::string>& wishes) {
  auto gloo = std::find(wishes.begin(), wishes.end(), kGloo);
  auto nccl = std::find(wishes.begin(), wishes.end(), kNccl);
  if (gloo != wishes.end() && nccl != wishes.end()) {
    throw ConfigError("rank " + std::to_string(nccl - wishes.begin()) + " asks for nccl but rank " +
                      std::to_string(gloo - wishes.begin()) + " can or will only use gloo");
  }
  return gloo == wishes.end() ? kNccl : kGloo;
}

c10::Device gpu_of(const Environment& environment) {
  return c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(environment.local_rank));
}

/// Makes it the one that is meant where no index is given.
void use_device(c10::Device gpu) { c10::impl::VirtualGuardImpl(gpu.type()).setDevice(gpu); }

ProcessGroup alone(const Environment& environment, Backend backend) {
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  const bool gpu = backend != Backend::kGloo && environment.local_rank < cuda_device_count();
  if (backend == Backend::kNccl && !gpu) throw ConfigError("nccl was asked for, but this process has no GPU");
  if (gpu) use_device(state->device = gpu_of(environment));
  return ProcessGroup(state);
}

void add_backend(Group& group, c10::DeviceType device, Group::BackendType type,
                 const c10::intrusive_ptr<c10d::Backend>& backend) {
  group.setBackend(device, type, backend);
  backend->setGroupUid("0");
}

/// CPU tensors go through gloo in an nccl group too.
void fill(ProcessGroupState& state, const BackendArguments& arguments) {
  const auto& environment = state.environment;
  state.group = c10::make_intrusive<Group>(arguments.store, arguments.rank, arguments.world_size);
  if (state.backend == kNccl) {
    state.device = gpu_of(environment);
    use_device(state.device);
    state.group->setBoundDeviceId(state.device);
    state.group->setDefaultBackend(Group::BackendType::NCCL);
    add_backend(*state.group, c10::DeviceType::CUDA, Group::BackendType::NCCL, make_nccl(arguments));
  } else {
    state.group->setDefaultBackend(Group::BackendType::GLOO);
  }
  add_backend(*state.group, c10::DeviceType::CPU, Group::BackendType::GLOO,
              make_gloo(arguments, environment.master_address));
  state.group->setGroupName("default_pg");
}

/// gloo and the store write to sockets without MSG_NOSIGNAL, as they may in Python, which ignores the signal.
void ignore_broken_pipes() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

ProcessGroup init(const InitOptions& options) {
  const auto environment = read_environment(process_variable);
  if (environment.world_size == 1) return alone(environment, options.backend);

  ignore_broken_pipes();
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  auto store = connect_store(environment, options.timeout);
  state->backend = common_backend(exchange(*store, environment, wish(environment, options.backend), options.timeout));
  communicating("cannot set up " + state->backend, [&] {
    fill(*state, {store, environment.rank, environment.world_size, options.timeout});
  });
  return ProcessGroup(state);
}

ProcessGroup::ProcessGroup(std::shared_ptr<const ProcessGroupState> state) : state_(std::move(state)) {}
int ProcessGroup::rank() const { return state_->environment.rank; }
int ProcessGroup::world_size() const { return state_->environment.world_size; }
int ProcessGroup::local_rank() const { return state_->environment.local_rank; }
int ProcessGroup::local_world_size() const { return state_->environment.local_world_size; }
c10::Device ProcessGroup::device() const { return state_->device; }
std::string_view ProcessGroup::backend() const { return state_->backend; }
c10d::ProcessGroup* ProcessGroup::native() const { return state_->group.get(); }

}  // namespace taas
