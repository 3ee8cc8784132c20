#include "taas/process_group.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <csignal>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "base/log/log_file.hpp"
#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/backend/backend_choice.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/nccl.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/rendezvous.hpp"

namespace taas {
namespace {

using Group = c10d::ProcessGroup;

constexpr const char* kGloo = "gloo";
constexpr const char* kNccl = "nccl";

/// Counting GPUs loads what knows them, before anything of ATen can ask for it.
Offer offer_of(const Environment& environment, Backend backend) {
  Offer offer{backend, {}, {}};
  if (backend == Backend::kGloo) return offer;
  const int visible = cuda_device_count();
  const int index = gpu_index(environment.local_rank, visible, environment.devices_per_rank);
  if (index >= 0) {
    offer.gpu = gpu_name(index);
  } else if (visible > 0) {
    offer.problem =
        "it sees " + std::to_string(visible) + " and its LOCAL_RANK is " + std::to_string(environment.local_rank);
  }
  return offer;
}

c10::Device gpu_of(const Environment& environment) {
  return c10::Device(c10::DeviceType::CUDA,
                     static_cast<c10::DeviceIndex>(
                         gpu_index(environment.local_rank, cuda_device_count(), environment.devices_per_rank)));
}

/// Makes it the one that is meant where no index is given.
void use_device(c10::Device gpu) { c10::impl::VirtualGuardImpl(gpu.type()).setDevice(gpu); }

void add_backend(Group& group, c10::DeviceType device, Group::BackendType type,
                 const c10::intrusive_ptr<c10d::Backend>& backend) {
  group.setBackend(device, type, backend);
}

/// CPU tensors go through gloo in an nccl group too, and tensors on a GPU in a gloo group, as in Python.
void fill(ProcessGroupState& state, const BackendArguments& arguments) {
  const auto& environment = state.environment;
  auto group = c10::make_intrusive<Group>(arguments.store, arguments.rank, arguments.world_size);
  auto gloo = make_gloo(arguments, environment.master_address.empty() ? "127.0.0.1" : environment.master_address);
  gloo->setGroupUid("0");
  if (state.backend == kNccl) {
    state.device = gpu_of(environment);
    use_device(state.device);
    group->setBoundDeviceId(state.device);
    group->setDefaultBackend(Group::BackendType::NCCL);
    add_backend(*group, c10::DeviceType::CUDA, Group::BackendType::NCCL, make_nccl(arguments, state.device.index()));
  } else {
    group->setDefaultBackend(Group::BackendType::GLOO);
    add_backend(*group, c10::DeviceType::CUDA, Group::BackendType::GLOO, gloo);
  }
  add_backend(*group, c10::DeviceType::CPU, Group::BackendType::GLOO, gloo);
  group->setGroupName("default_pg");
  state.group = std::move(group);
}

void set_up(ProcessGroupState& state, const BackendArguments& arguments) {
  communicating("cannot set up " + state.backend, [&] { fill(state, arguments); });
}

/// One process: nothing is to be communicated, unless nccl is asked for by name, as one GPU is enough to try it.
ProcessGroup alone(const Environment& environment, const InitOptions& options) {
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  const auto offer = offer_of(environment, options.backend);
  if (options.backend == Backend::kNccl) {
    choose_backend({offer});
    state->backend = kNccl;
    set_up(*state, {c10::make_intrusive<c10d::HashStore>(), 0, 1, options.timeout});
  } else if (!offer.gpu.empty()) {
    use_device(state->device = gpu_of(environment));
  }
  return ProcessGroup(state);
}

/// All ranks choose the same, so one of them says why.
std::string common_backend(c10d::Store& store, const Environment& environment, const InitOptions& options) {
  std::vector<Offer> offers;
  const auto mine = print_offer(offer_of(environment, options.backend));
  for (const auto& text : exchange(store, environment, mine, options.timeout)) offers.push_back(parse_offer(text));
  const auto choice = choose_backend(offers);
  if (environment.rank == 0 && !choice.reason.empty()) {
    TORCH_WARN("gloo on the CPU is used though there are GPUs: ", choice.reason);
  }
  return choice.nccl ? kNccl : kGloo;
}

/// gloo and the store write to sockets without MSG_NOSIGNAL, as they may in Python, which ignores the signal.
void ignore_broken_pipes() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

void begin_log(const Environment& environment) {
  const auto rank = std::to_string(environment.rank);
  if (auto opened = log::open_as_told("rank-" + rank); !opened) throw ConfigError(opened.error().message);
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo,
             "rank " + rank + " of " + std::to_string(environment.world_size) + ", local rank " +
                 std::to_string(environment.local_rank) + ", store at " + environment.master_address + ":" +
                 std::to_string(environment.master_port) + ", restart " + std::to_string(environment.restart_count));
}

void log_backend(const ProcessGroupState& state) {
  if (!log::is_on(LogPart::kTraining, LogLevel::kInfo)) return;
  log::write(LogPart::kTraining, LogLevel::kInfo, state.backend + " is set up, the device is " + state.device.str());
}

}  // namespace

ProcessGroupState::~ProcessGroupState() {
  try {
    std::uncaught_exceptions() > exceptions_at_start ? abort() : shut_down();
  } catch (const std::exception& error) {
    TORCH_WARN("the process group has not ended in order: ", one_line(error));
  }
}

void ProcessGroupState::shut_down() const {
  if (group && !std::exchange(ended, true)) group->shutdown();
}

void ProcessGroupState::abort() const {
  if (group && !std::exchange(ended, true)) group->abort();
}

ProcessGroup init(const InitOptions& options) {
  const auto environment = read_environment(process_variable);
  begin_log(environment);
  if (environment.world_size == 1) return alone(environment, options);

  ignore_broken_pipes();
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  auto store = connect_store(environment, options.timeout);
  state->backend = common_backend(*store, environment, options);
  set_up(*state, {store, environment.rank, environment.world_size, options.timeout});
  log_backend(*state);
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
void ProcessGroup::shutdown() const {
  communicating("shutdown", [&] { state_->shut_down(); });
}

}  // namespace taas
