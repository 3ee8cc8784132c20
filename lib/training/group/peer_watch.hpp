#pragma once

#include <c10/util/intrusive_ptr.h>

#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "base/fd.hpp"
#include "training/backend/environment.hpp"

namespace taas {

/// Finds out why a collective has failed: which rank is gone, or has left with an error of its own. gloo alone knows
/// that a connection is closed, maybe by a rank that gave up for the same reason.
///
/// Each rank has a door bell, a socket that listens and never accepts, and writes its address into the store under
/// bell/<rank>: the kernel answers for as long as the process lives, and refuses once it is gone. Why a rank leaves, it
/// writes under left/<rank>.
class PeerWatch {
 public:
  /// Publishes this rank's door bell.
  PeerWatch(c10::intrusive_ptr<c10d::Store> store, const Environment& environment);

  /// "rank 2 is gone", "rank 2 has left with an error of its own", or nothing when all seem to be there. The first
  /// answer stays. Takes up to half a second, since those that know more may not have said it yet.
  std::string culprit();
  /// This rank leaves: with an error of its own, unless it has asked for the culprit before.
  void leave();

 private:
  std::string look();
  std::string state_of(int rank);
  void say(const char* why);

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int world_size_;
  Fd bell_;
  std::mutex mutex_;
  std::optional<std::string> found_;
};

}  // namespace taas
