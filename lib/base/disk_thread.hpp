#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/system_error.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace taas {

/// Does what may have to wait for a disk, often one on shared storage: in a thread of its own, one piece of work after
/// the other, so that the event loop never waits for a disk. The thread begins with the first piece. As long as the
/// system starts none, a line says so, and the event loop does the work itself.
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

/// Says on standard error, once in a process, that work is done without a thread of its own.
void tell_without_thread(const Error& why);

/// A thread for work of any kind, which begins with the first piece of it. Its destruction waits for what is under way.
using WorkerThread = std::optional<boost::asio::thread_pool>;

/// Work for that thread. Where the system starts none, a line says so and the work is done here and now.
template <class Work>
void run_on(WorkerThread& thread, Work work) {
  try {
    if (!thread) thread.emplace(1);
  } catch (const boost::system::system_error& refused) {
    tell_without_thread(system_error("no thread can be started", refused.code().value()));
    return work();
  }
  boost::asio::post(*thread, std::move(work));
}

}  // namespace taas
