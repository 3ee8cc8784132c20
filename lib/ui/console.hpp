#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/disk_thread.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "ui/text/events.hpp"
#include "ui/text/sink.hpp"

namespace taas::ui {

/// A descriptor of the launcher's own stdout or stderr for a Console.
Fd duplicate(Stream stream);

/// Writes text to a terminal, pipe or file in order and never makes the event loop wait for whoever reads it, nor for a
/// disk: what the descriptor does not take now is kept and written when it can be. O_NONBLOCK is never set on the given
/// descriptor, since the user's shell shares it. A reader that went away silences the console; so does a full disk,
/// which lost() tells of. SIGPIPE must be ignored.
class Console : public Sink {
 public:
  /// Back-pressure: more than `high` bytes wait (true), no more than `low` (false).
  struct Options {
    std::size_t high = 256 * 1024;
    std::size_t low = 64 * 1024;
    std::function<void(bool crowded)> on_crowded = {};
    DiskThread* disk = nullptr;  ///< writes to files; none: a file is written at once. Outlives the console
  };

  Console(boost::asio::io_context& io, Fd descriptor);
  Console(boost::asio::io_context& io, Fd descriptor, Options options);
  ~Console() override;

  void write(std::string_view text) override;
  /// Bytes that wait for the reader, or for the disk.
  [[nodiscard]] std::size_t pending() const;
  /// Waits until everything is written or the deadline has come; for the end of the run. Returns what was left.
  std::size_t finish(Instant deadline);
  /// Why text could not be written. A reader that went away wanted no more: then nothing was lost.
  [[nodiscard]] Result<> lost() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas::ui
