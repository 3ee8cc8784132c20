#pragma once

#include "run/events/policy.hpp"

namespace taas::run {

/// What a signal asks for.
enum class SignalWish {
  kNone,        ///< the same as the one before, which came on another way
  kStop,        ///< end the run
  kCheckpoint,  ///< ranks are to write a checkpoint, since the run will end soon
  kPassOn,      ///< nothing of the launcher: ranks get it
};

/// What signals that the launcher was sent ask for, and what was asked for before. Pure.
class SignalWishes {
 public:
  /// `policy` must outlive this.
  explicit SignalWishes(const Policy& policy) : policy_(policy) {}

  SignalWish read(int signal, Instant now);
  /// Ranks have not been told to write a checkpoint before, and are from now on.
  bool begin_checkpoint();
  [[nodiscard]] bool checkpoint_requested() const { return checkpoint_requested_; }

 private:
  bool repeats(int signal, Instant now);

  const Policy& policy_;
  int last_stop_signal_ = 0;
  Instant last_stop_at_{};
  bool checkpoint_requested_ = false;
};

}  // namespace taas::run
