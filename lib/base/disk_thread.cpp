#include "base/disk_thread.hpp"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/quiet_thread.hpp"

namespace taas {
namespace {

struct DiskJob {
  std::function<void()> work;
  std::function<void()> then;
};

}  // namespace

/// Kept alive by the thread as well: one that hangs in a disk is left behind at the end.
struct DiskThread::State : std::enable_shared_from_this<State> {
  explicit State(boost::asio::io_context& loop) : io(loop) {}

  void add(DiskJob job) {
    if (following++ == 0) loop_has_work.emplace(boost::asio::make_work_guard(io));
    {
      std::lock_guard lock(mutex);
      jobs.push_back(std::move(job));
      ++unfinished;
    }
    if (!std::exchange(will_wake, true)) boost::asio::post(io, [self = shared_from_this()] { self->wake(); });
  }

  /// Once for all that one handler of the event loop gives, and after it: a thread that wakes up for each piece takes
  /// the processor from the loop that many times.
  void wake() {
    will_wake = false;
    if (!started) start();
    if (!started) return work_here();
    changed.notify_all();
  }

  void start() {
    std::thread thread;
    auto begun = begin_quietly(thread, [self = shared_from_this()] { self->work(); });
    started = begun.has_value();
    started ? thread.detach() : tell_without_thread(begun.error());
  }

  /// In the event loop, which then waits for the disk. The next work tries to have a thread again.
  void work_here() {
    std::unique_lock lock(mutex);
    while (!jobs.empty()) do_first(lock);
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closed || !jobs.empty(); });
      if (jobs.empty()) return;
      do_first(lock);
    }
  }

  void do_first(std::unique_lock<std::mutex>& lock) {
    auto job = std::move(jobs.front());
    jobs.pop_front();
    lock.unlock();
    job.work();
    job.work = nullptr;  // with what it holds, before the event loop goes on
    lock.lock();
    --unfinished;
    ++finished;
    changed.notify_all();
    if (closed) return;
    done.push_back(std::move(job.then));
    if (done.size() == 1) boost::asio::post(io, [self = shared_from_this()] { self->follow(); });
  }

  void follow() {
    std::unique_lock lock(mutex);
    auto all = std::exchange(done, {});
    lock.unlock();
    for (const auto& then : all) {
      if (parted) return;
      if (--following == 0) loop_has_work.reset();
      if (then) then();
    }
  }

  /// Patience begins anew with each piece of work that is done.
  bool finish(Duration patience) {
    if (will_wake) wake();
    std::unique_lock lock(mutex);
    while (unfinished > 0) {
      auto before = finished;
      stuck = !changed.wait_for(lock, patience, [&] { return finished > before; });
      if (stuck) return false;
    }
    return true;
  }

  void part() {
    parted = true;
    loop_has_work.reset();
    std::vector<std::function<void()>> never;  // ends here, not on the thread
    std::lock_guard lock(mutex);
    never.swap(done);
    closed = true;
    changed.notify_all();
  }

  boost::asio::io_context& io;
  // Used in the event loop only.
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> loop_has_work;
  long following = 0;
  bool started = false;
  bool will_wake = false;
  bool parted = false;
  bool stuck = false;  // was waited for in vain

  std::mutex mutex;  // guards all that follows
  std::condition_variable changed;
  std::deque<DiskJob> jobs;
  std::vector<std::function<void()>> done;  // what is to follow
  long unfinished = 0;
  long finished = 0;
  bool closed = false;  // the event loop may be gone
};

DiskThread::DiskThread(boost::asio::io_context& io) : state_(std::make_shared<State>(io)) {}

DiskThread::~DiskThread() {
  state_->finish(state_->stuck ? Duration(0) : kPatience);
  state_->part();
}

void DiskThread::run(std::function<void()> work, std::function<void()> then) {
  state_->add({std::move(work), std::move(then)});
}

void DiskThread::after(std::function<void()> then) {
  run([] {}, std::move(then));
}

bool DiskThread::finish(Duration patience) { return state_->finish(patience); }

void tell_without_thread(const Error& why) {
  static std::atomic<bool> told = false;
  if (told.exchange(true)) return;
  std::fputs(
      fmt::format("taas-run: {}: disks are waited for meanwhile; threads count towards ulimit -u, and towards the "
                  "pids limit of a container or job\n",
                  why.message)
          .c_str(),
      stderr);
}

}  // namespace taas
