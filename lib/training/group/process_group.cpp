#include "taas/process_group.hpp"

#include <atomic>
#include <csignal>
#include <numeric>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "base/log/log_file.hpp"
#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/backend/backend_choice.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/nccl.hpp"
#include "training/group/group_setup.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/rendezvous.hpp"

namespace taas {
namespace {

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
  return choice.nccl ? kNcclName : kGlooName;
}

/// Each init() of a process has a name space of its own in the store; the launcher looks into the first one's.
std::string name_of_next_group() {
  static std::atomic<int> made = 0;
  const int number = made++;
  return number == 0 ? kFirstGroup : std::string(kFirstGroup) + "/" + std::to_string(number);
}

/// torch's own switch for it.
bool wants_detail() { return process_variable("TORCH_DISTRIBUTED_DEBUG") == "DETAIL"; }

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

/// What the other ranks are told when they ask why their collectives fail.
void ProcessGroupState::abort() const {
  if (!group || std::exchange(ended, true)) return;
  if (watch) watch->leave();
  group->abort();
}

ProcessGroup init(const InitOptions& options) {
  const auto environment = read_environment(process_variable);
  begin_log(environment);
  if (environment.world_size == 1) return alone(environment, options);

  ignore_broken_pipes();
  auto state = std::make_shared<ProcessGroupState>();
  state->environment = environment;
  state->name = name_of_next_group();
  state->timeout = options.timeout;
  state->check_collectives = options.check_collectives || wants_detail();
  state->ranks.resize(static_cast<std::size_t>(environment.world_size));
  std::iota(state->ranks.begin(), state->ranks.end(), 0);
  state->store = connect_store(environment, state->name, options.timeout);
  state->backend = common_backend(*state->store, environment, options);
  state->watch = std::make_shared<PeerWatch>(state->store, environment);
  set_up(*state);
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
const std::vector<int>& ProcessGroup::ranks() const { return state_->ranks; }
void ProcessGroup::abort() const {
  communicating("abort", [&] { state_->abort(); });
}
void ProcessGroup::shutdown() const {
  communicating("shutdown", [&] { state_->shut_down(); });
}

}  // namespace taas
