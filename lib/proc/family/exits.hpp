#pragma once

#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "proc/spawn/spawn.hpp"

namespace boost::asio {
class io_context;
}

namespace taas {

using ExitCallback = std::function<void(ExitStatus, Instant)>;

/// Owns a started process until its end: reaps it in the event loop and then calls back, once. Of several watches on
/// one loop the callbacks come in the order in which the processes ended, even when the loop was busy meanwhile.
/// Destroying it before the end neither kills nor reaps the process. The callback may destroy the watch.
class ExitWatch {
 public:
  ExitWatch(boost::asio::io_context& io, Child child, ExitCallback on_exit);
  ~ExitWatch();
  ExitWatch(ExitWatch&&) noexcept;
  ExitWatch& operator=(ExitWatch&&) noexcept;

  [[nodiscard]] int pid() const;
  /// True until the callback: the number still means this process.
  [[nodiscard]] bool running() const;
  /// Signals the process group that the process leads; nothing once it is reaped, since the number is free then.
  void signal_group(int signal) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
