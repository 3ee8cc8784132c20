#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace boost::asio {
class io_context;
}

namespace taas {

/// What is told about one stream of a rank. All are called from the event loop (and from drain_now); any may be empty.
struct CaptureCallbacks {
  std::function<void(std::string_view, Instant)> on_bytes;  ///< valid during the call only
  std::function<void()> on_end;                             ///< no process holds the other end any more
  std::function<void(const Error&)> on_log_error;  ///< at most once; the file is given up, the bytes still come
};

/// Owns the reading end of a rank's stdout or stderr: appends what comes to a log file, byte for byte, and passes it
/// on. Destroying it stops both; any callback may do that.
class Capture {
 public:
  /// An empty log_path means no file. A file that cannot be opened is told through on_log_error once the loop turns.
  Capture(boost::asio::io_context& io, Fd pipe, std::string log_path, CaptureCallbacks callbacks);
  ~Capture();
  Capture(Capture&&) noexcept;
  Capture& operator=(Capture&&) noexcept;

  /// Reads what is in the pipe at this moment, even when paused, and waits for nothing. For a rank that has ended, so
  /// that its last words come before its end is told. Grandchildren may still hold the pipe and write later.
  void drain_now();
  /// Stops reading: the pipe fills up, then its writers wait. For a console that cannot keep up.
  void pause();
  void resume();
  /// True once on_end has been called.
  [[nodiscard]] bool ended() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
