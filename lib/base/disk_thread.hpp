#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "base/clock.hpp"

namespace taas {

/// Does what may have to wait for a disk, often one on shared storage: in a thread of its own, one piece of work after
/// the other, so that the event loop never waits for a disk. The thread begins with the first piece.
class DiskThread {
 public:
  explicit DiskThread(boost::asio::io_context& io);
  /// What waits is finished first, unless the disk takes nothing for kPatience, or finish() has just found that it
  /// takes nothing. Nothing follows any more.
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  static constexpr auto kPatience = std::chrono::seconds(5);

  /// `then` is called in the event loop when `work` has been done, in the order of the calls.
  void run(std::function<void()> work, std::function<void()> then = nullptr);
  /// `then` is called in the event loop when all work that was given before has been done.
  void after(std::function<void()> then);
  /// Waits until no work is left, or one piece has taken longer than the patience. Returns whether none is left.
  bool finish(Duration patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace taas
