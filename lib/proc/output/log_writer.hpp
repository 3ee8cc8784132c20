#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/disk_thread.hpp"
#include "base/error.hpp"
#include "base/folders/held_folder.hpp"

namespace taas {

/// What is told about a LogWriter. Called in the event loop; not after it is gone.
struct LogWriterCallbacks {
  std::function<void(const Error&)> on_error;  ///< at most once: the file goes on when it can
  std::function<void()> on_room;               ///< it is crowded no longer
};

/// A log file that is written on a disk thread, so that appending never waits for a disk. Who appends is to stop while
/// it is crowded: that bounds what waits in memory.
class LogWriter {
 public:
  static constexpr std::size_t kCrowded = 1 << 20;  ///< bytes
  static constexpr std::size_t kRoom = kCrowded / 4;

  LogWriter(DiskThread& disk, HeldPath place, LogWriterCallbacks callbacks);
  /// What was appended is written all the same.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void append(std::string_view bytes);
  [[nodiscard]] bool crowded() const;
  /// Called once, last; `then` when all is in the file, even when this is gone by then.
  void close(std::function<void()> then);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
