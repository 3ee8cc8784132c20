#pragma once

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "training/backend/environment.hpp"
#include "training/group/peer_watch.hpp"

namespace taas {

class SharedSums;

/// The group of the first init() of a process, by the name that torch gives it.
inline constexpr const char* kFirstGroup = "default_pg";
inline constexpr const char* kGlooName = "gloo";

/// What a ProcessGroup handle points to.
struct ProcessGroupState {
  Environment environment;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  std::string backend = "none";
  c10::intrusive_ptr<c10d::ProcessGroup> group;  ///< null in a group of one process
  std::vector<int> ranks{0};                     ///< by rank in this group: the rank in the group that init() gave
  std::string name = kFirstGroup;                ///< as torch and the store's keys have it
  c10::intrusive_ptr<c10d::Store> store;         ///< of this group alone; null in a group of one process
  std::chrono::milliseconds timeout{};
  bool check_collectives = false;
  std::shared_ptr<PeerWatch> watch;  ///< of the group that init() gave
  mutable int groups_made = 0;       ///< out of this one, here as on its other ranks
  int exceptions_at_start = std::uncaught_exceptions();
  mutable bool ended = false;

  ProcessGroupState() = default;
  ProcessGroupState(const ProcessGroupState&) = delete;
  ProcessGroupState& operator=(const ProcessGroupState&) = delete;
  /// Ends the group: in order, or, when an exception is what ends it, without waiting for what is under way.
  ~ProcessGroupState();

  void shut_down() const;
  void abort() const;
};

/// The ranks of a gloo group once more, whose all_reduce makes small sums by `sums`.
c10::intrusive_ptr<c10d::ProcessGroup> summing_by(const ProcessGroupState& state, std::shared_ptr<SharedSums> sums);

}  // namespace taas
