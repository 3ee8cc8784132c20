#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "base/disk_thread.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/folders/held_folder.hpp"

namespace boost::asio {
class io_context;
}

namespace taas {

/// What is told about one stream of a rank. All are called from the event loop (and from drain_now); any may be empty.
struct CaptureCallbacks {
  std::function<void(std::string_view, Instant)> on_bytes;  ///< valid during the call only
  std::function<void()> on_end;                    ///< no process holds the other end any more, and the file has all
  std::function<void(const Error&)> on_log_error;  ///< at most once; the file goes on when it can
};

/// Where a Capture keeps what it reads.
struct CaptureLog {
  DiskThread* disk = nullptr;  ///< outlives the capture
  HeldPath file = {};          ///< without a name: none
};

/// Owns the reading end of a rank's stdout or stderr: appends what comes to a log file, byte for byte, and passes it
/// on. While the disk falls behind it reads nothing, so that in the end the rank waits for the disk, and the event loop
/// never does. Destroying it stops both; any callback may do that.
class Capture {
 public:
  /// A file that cannot be opened is told through on_log_error once the loop turns.
  Capture(boost::asio::io_context& io, Fd pipe, CaptureLog log, CaptureCallbacks callbacks);
  ~Capture();
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;

  /// Reads what is in the pipe at this moment, even when paused or when the disk is behind, and waits for nothing. For
  /// a rank that has ended, so that its last words come before its end is told. Grandchildren may still hold the pipe
  /// and write later.
  void drain_now();
  /// Stops reading: the pipe fills up, then its writers wait. For a console that cannot keep up.
  void pause();
  void resume();
  /// There is nothing more to read: on_end has been called, or is when the file has all.
  [[nodiscard]] bool ended() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
