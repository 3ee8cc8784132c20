#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

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
  /// Ranks compare what they are about to do before each collective: another operation, shape or type on one of them is
  /// a CommunicationError that names both, instead of a crash or a hang. Each collective takes several times as long.
  /// Also with TORCH_DISTRIBUTED_DEBUG=DETAIL.
  bool check_collectives = false;
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
  /// By rank in this group: the rank in the group that init() gave.
  const std::vector<int>& ranks() const;
  /// Where this rank's model and data belong: under nccl its GPU (device 0 where one is visible, else that of its local
  /// rank), the CPU under gloo.
  c10::Device device() const;
  /// "gloo", "nccl", or "none" for a group of one process.
  std::string_view backend() const;

  /// The c10d group underneath; over gloo it has the calls of collectives.hpp and of c10d's reducer alone. Null in a
  /// group of one process.
  c10d::ProcessGroup* native() const;

  /// Ends the group on this rank, once its collectives are through; every rank calls it. No copy may be used for a
  /// collective afterwards. Without a call the last copy does it, or, while an exception ends its scope, drops what is
  /// under way. Throws CommunicationError.
  void shutdown() const;
  /// Ends the group on this rank at once; what is under way is dropped. The other ranks' collectives fail, and name
  /// this rank. For a program that goes on alone after an error: one that ends need not call it.
  void abort() const;

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
///
/// May be called again, by all ranks: for a second group of all of them, while the first one lives or after it has
/// ended.
ProcessGroup init(const InitOptions& options = {});

struct GroupOptions {
  /// How long each collective may take; unset: as in the parent.
  std::optional<std::chrono::milliseconds> timeout{};
};

/// A group of some ranks of `parent` (their numbers in it): rank i of the new one is ranks[i]. Every rank of the parent
/// calls it, with the same list; those that are not in it get nothing. It has the backend and the device of the parent,
/// and works wherever a ProcessGroup does. Throws InvalidArgument for an empty list, a rank outside of the parent and
/// one that is named twice; CommunicationError when ranks do not come within the timeout.
std::optional<ProcessGroup> new_group(const ProcessGroup& parent, const std::vector<int>& ranks,
                                      const GroupOptions& options = {});

/// One group for each color, of the ranks that gave it, in the order of their keys and, where these are equal, of their
/// ranks in the parent (MPI_Comm_split). Every rank of the parent calls it; one without a color gets nothing.
std::optional<ProcessGroup> split(const ProcessGroup& parent, std::optional<int> color, int key = 0,
                                  const GroupOptions& options = {});

}  // namespace taas
