#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <string_view>

namespace c10d {
class ProcessGroup;
}

namespace taas {

enum class Backend {
  kAuto,  ///< nccl when every rank has a GPU of its own, gloo otherwise, with a warning where there are GPUs; all ranks
          ///< agree
  kGloo,
  kNccl,
};

struct InitOptions {
  Backend backend = Backend::kAuto;
  /// How long to wait for the other ranks: to join, and in each collective.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

struct ProcessGroupState;

/// A set of processes that train together. A handle: copies mean the same group, which lives until the last copy is
/// gone. A group of one process is complete too: its collectives return at once with the right result.
class ProcessGroup {
 public:
  int rank() const;
  int world_size() const;
  /// Place among the ranks of this machine.
  int local_rank() const;
  int local_world_size() const;
  /// Where this rank's model and data belong: under nccl its GPU (device 0 where one is visible, else that of its local
  /// rank), the CPU under gloo.
  c10::Device device() const;
  /// "gloo", "nccl", or "none" for a group of one process.
  std::string_view backend() const;

  /// The c10d group underneath, for calls this library does not wrap; null in a group of one process.
  c10d::ProcessGroup* native() const;

  /// Ends the group on this rank, once its collectives are through; every rank calls it. No copy may be used for a
  /// collective afterwards. Without a call the last copy does it, or, while an exception ends its scope, drops what is
  /// under way. Throws CommunicationError.
  void shutdown() const;

  explicit ProcessGroup(std::shared_ptr<const ProcessGroupState> state);
  const ProcessGroupState& state() const { return *state_; }

 private:
  std::shared_ptr<const ProcessGroupState> state_;
};

/// Joins the group that the environment describes, as taas-run and torchrun export it: RANK, WORLD_SIZE, LOCAL_RANK,
/// LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT, and
/// GLOO_SOCKET_IFNAME. Returns when all ranks have joined. With none of RANK and WORLD_SIZE set: a group of one
/// process.
///
/// A write to a rank that has gone away is to be an error, not the silent death of this process: where SIGPIPE has its
/// default action, a group of several processes ignores it from here on. A handler of the program's own stays.
///
/// Throws ConfigError for a variable that is missing, is no number or does not fit, or when ranks ask for different
/// backends or cannot have the one that is asked for (two ranks with one GPU, too few GPUs); CommunicationError naming
/// the missing ranks when not all have joined within the timeout, or when the backend cannot be set up: nccl connects
/// here.
///
/// With nccl asked for by name a group of one process is a real one.
ProcessGroup init(const InitOptions& options = {});

}  // namespace taas
