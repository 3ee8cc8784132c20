#include "taas/process_group.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <numeric>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupWrapper.hpp>
#include <utility>
#include <vector>

#include "base/log/log_file.hpp"
#include "base/log/log_line.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/backend/backend_choice.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/versions.hpp"
#include "training/group/named_backend.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/rendezvous.hpp"
#include "training/group/tensor_checks.hpp"

namespace taas {
namespace {

using NativeGroup = c10d::ProcessGroup;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

constexpr const char* kNcclName = "nccl";
/// Not GLOO: c10d's logger takes that for a ProcessGroupGloo, without a question.
constexpr auto kWrappedGloo = NativeGroup::BackendType::CUSTOM;

/// The first GPU of this rank, which becomes the one that is meant where no index is given.
c10::Device take_gpu(const Environment& environment) {
  const int index = gpu_index(environment.local_rank, cuda_device_count(), environment.devices_per_rank);
  const c10::Device gpu(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index));
  c10::impl::VirtualGuardImpl(gpu.type()).setDevice(gpu);
  return gpu;
}

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

c10::intrusive_ptr<NativeGroup> group_without_backend(const ProcessGroupState& state) {
  return c10::make_intrusive<NativeGroup>(state.store, state.environment.rank, state.environment.world_size);
}

/// Tensors on a GPU, too, as in Python.
void set_gloo(NativeGroup& group, const BackendPointer& gloo) {
  group.setDefaultBackend(kWrappedGloo);
  group.setBackend(c10::DeviceType::CPU, kWrappedGloo, gloo);
  group.setBackend(c10::DeviceType::CUDA, kWrappedGloo, gloo);
}

/// CPU tensors go through gloo in an nccl group too, as in Python.
void fill(ProcessGroupState& state) {
  auto group = group_without_backend(state);
  auto gloo = with_named_errors(compared(state, gloo_of(state), "compared"), state.watch);
  gloo->setGroupUid(arguments_of(state).group_uid);
  if (state.backend == kNcclName) {
    state.device = take_gpu(state.environment);
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

/// Connects the ranks, by the backend that the state names, through its store, and fills in device and group.
void set_up(ProcessGroupState& state) {
  communicating("cannot set up " + state.backend, [&] { fill(state); });
}

/// Counting GPUs loads what knows them, before anything of ATen can ask for it.
BackendOffer offer_of(const Environment& environment, Backend backend) {
  BackendOffer offer{backend, {}, {}};
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

/// One process: nothing is to be communicated, unless nccl is asked for by name, as one GPU is enough to try it.
ProcessGroup alone(const Environment& environment, const InitOptions& options) {
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  const auto offer = offer_of(environment, options.backend);
  if (options.backend == Backend::kNccl) {
    choose_backend({offer});
    state->backend = kNcclName;
    state->store = c10::make_intrusive<c10d::HashStore>();
    state->timeout = options.timeout;
    set_up(*state);
  } else if (!offer.gpu.empty()) {
    state->device = take_gpu(environment);
  }
  return ProcessGroup(state);
}

/// All ranks choose the same, so one of them says why.
std::string common_backend(c10d::Store& store, const Environment& environment, const InitOptions& options) {
  std::vector<BackendOffer> offers;
  const auto mine = print_offer(offer_of(environment, options.backend));
  for (const auto& text : exchange(store, environment, mine, options.timeout)) offers.push_back(parse_offer(text));
  const auto choice = choose_backend(offers);
  if (environment.rank == 0 && !choice.reason.empty()) {
    TORCH_WARN("gloo on the CPU is used though there are GPUs: ", choice.reason);
  }
  return choice.nccl ? kNcclName : kGlooName;
}

/// Each init() of a process has a name space of its own in the store; the launcher looks into the first one's.
std::string name_of_next_group() {
  static std::atomic<int> made = 0;
  const int number = made++;
  return number == 0 ? kFirstGroup : std::string(kFirstGroup) + "/" + std::to_string(number);
}

/// gloo and the store write to sockets without MSG_NOSIGNAL, as they may in Python, which ignores the signal.
void ignore_broken_pipes() {
  struct sigaction action {};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

void log_info(const std::string& text) {
  if (log::is_on(LogPart::kTraining, LogLevel::kInfo)) log::write(LogPart::kTraining, LogLevel::kInfo, text);
}

void begin_log(const Environment& environment) {
  const auto rank = std::to_string(environment.rank);
  if (auto opened = log::open_as_told("rank-" + rank); !opened) throw ConfigError(opened.error().message);
  log_info("rank " + rank + " of " + std::to_string(environment.world_size) + ", local rank " +
           std::to_string(environment.local_rank) + ", store at " + environment.master_address + ":" +
           std::to_string(environment.master_port) + ", restart " + std::to_string(environment.restart_count));
}

/// As in Python: a rank that ended right away would close connections that others are still making.
ProcessGroup met(ProcessGroup group) {
  auto nothing = at::zeros({1});
  all_reduce(group, nothing);
  return group;
}

void check_members(const ProcessGroup& parent, const std::vector<int>& ranks) {
  if (ranks.empty()) throw InvalidArgument("new_group: a group needs a rank at least");
  for (int rank : ranks) check_rank(parent, "new_group", "rank", rank);
  for (auto rank = ranks.begin(); rank != ranks.end(); ++rank) {
    if (std::find(rank + 1, ranks.end(), *rank) != ranks.end()) {
      throw InvalidArgument("new_group: rank " + std::to_string(*rank) + " is named twice");
    }
  }
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

/// What the other ranks are told when they ask why their collectives fail.
void ProcessGroupState::abort() const {
  if (!group || std::exchange(ended, true)) return;
  if (watch) watch->leave();
  group->abort();
}

c10::intrusive_ptr<c10d::ProcessGroup> summing_by(const ProcessGroupState& state, std::shared_ptr<SharedSums> sums) {
  auto group = group_without_backend(state);
  set_gloo(*group, with_shared_sums(state.group->getBackend(c10::DeviceType::CPU), std::move(sums)));
  group->setGroupName(state.name);
  return group;
}

ProcessGroup init(const InitOptions& options) {
  check_torch();
  const auto environment = read_environment(process_variable);
  begin_log(environment);
  if (environment.world_size == 1) return alone(environment, options);

  ignore_broken_pipes();
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  state->name = name_of_next_group();
  state->timeout = options.timeout;
  state->check_collectives = options.check_collectives || process_variable("TORCH_DISTRIBUTED_DEBUG") == "DETAIL";
  state->ranks.resize(static_cast<std::size_t>(environment.world_size));
  std::iota(state->ranks.begin(), state->ranks.end(), 0);
  state->store = connect_store(environment, state->name, options.timeout);
  state->backend = common_backend(*state->store, environment, options);
  state->watch = std::make_shared<PeerWatch>(state->store, environment);
  set_up(*state);
  log_info(state->backend + " is set up, the device is " + state->device.str());
  return met(ProcessGroup(state));
}

std::optional<ProcessGroup> new_group(const ProcessGroup& parent, const std::vector<int>& ranks,
                                      const GroupOptions& options) {
  check_members(parent, ranks);
  const auto& outer = parent.state();
  // split() makes several at once, of different ranks.
  const auto name = outer.name + "/" + std::to_string(outer.groups_made++) + " of " + std::to_string(ranks.front());
  const auto member = std::find(ranks.begin(), ranks.end(), parent.rank());
  if (member == ranks.end()) return std::nullopt;
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = outer.environment;
  state->environment.rank = static_cast<int>(member - ranks.begin());
  state->environment.world_size = static_cast<int>(ranks.size());
  state->device = outer.device;
  state->name = name;
  state->timeout = options.timeout.value_or(outer.timeout);
  state->check_collectives = outer.check_collectives;
  state->watch = outer.watch;
  state->ranks.clear();
  for (int rank : ranks) state->ranks.push_back(outer.ranks[static_cast<std::size_t>(rank)]);
  if (ranks.size() == 1) return ProcessGroup(state);
  state->backend = outer.backend;
  state->store = c10::make_intrusive<c10d::PrefixStore>(name, outer.store);
  set_up(*state);
  return met(ProcessGroup(state));
}

std::optional<ProcessGroup> split(const ProcessGroup& parent, std::optional<int> color, int key,
                                  const GroupOptions& options) {
  const auto mine = at::tensor({color.has_value() ? 1 : 0, color.value_or(0), key}, at::kInt);
  auto all = at::empty({parent.world_size(), 3}, at::kInt);
  all_gather(parent, all, mine);
  std::vector<std::pair<int, int>> members;  // key and rank
  for (int rank = 0; rank < parent.world_size(); ++rank) {
    const auto* row = all.const_data_ptr<int>() + 3 * rank;
    if (row[0] == 1 && row[1] == color) members.emplace_back(row[2], rank);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [ignored, rank] : members) ranks.push_back(rank);
  if (color) return new_group(parent, ranks, options);
  ++parent.state().groups_made;
  return std::nullopt;
}

ProcessGroup::ProcessGroup(std::shared_ptr<const ProcessGroupState> state) : state_(std::move(state)) {}
int ProcessGroup::rank() const { return state_->environment.rank; }
int ProcessGroup::world_size() const { return state_->environment.world_size; }
int ProcessGroup::local_rank() const { return state_->environment.local_rank; }
int ProcessGroup::local_world_size() const { return state_->environment.local_world_size; }
c10::Device ProcessGroup::device() const { return state_->device; }
std::string_view ProcessGroup::backend() const { return state_->backend; }
c10d::ProcessGroup* ProcessGroup::native() const { return state_->group.get(); }
const std::vector<int>& ProcessGroup::ranks() const { return state_->ranks; }
void ProcessGroup::abort() const {
  communicating("abort", [&] { state_->abort(); });
}
void ProcessGroup::shutdown() const {
  communicating("shutdown", [&] { state_->shut_down(); });
}

}  // namespace taas
