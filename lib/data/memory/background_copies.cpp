#include "data/memory/background_copies.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "data/memory/stream_copy.hpp"

namespace taas::data {

namespace {

/// Less is copied sooner than another thread is awake.
constexpr std::size_t kWorthAThread = std::size_t{1} << 20;
constexpr std::size_t kPieceBytes = std::size_t{512} << 10;
/// With the one that waits: enough for what memory gives on machines with several channels.
constexpr unsigned kMostThreads = 3;

std::vector<CopyPart> pieces_of(const std::vector<CopyPart>& parts) {
  std::vector<CopyPart> pieces;
  for (auto [to, from] : parts) {
    for (; !from.empty(); to += pieces.back().from.size(), from = from.subspan(pieces.back().from.size())) {
      pieces.push_back({to, from.first(std::min(from.size(), kPieceBytes))});
    }
  }
  return pieces;
}

}  // namespace

struct BackgroundCopy::Job {
  explicit Job(std::vector<CopyPart> of) : pieces(std::move(of)) {}

  const std::vector<CopyPart> pieces;
  const pid_t process = ::getpid();
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;

  void work() {
    for (auto mine = next++; mine < pieces.size(); mine = next++) {
      stream_copy(pieces[mine].to, pieces[mine].from);
      if (++done == pieces.size()) done.notify_all();
    }
  }
  void wait() {
    work();
    for (auto now = done.load(); now < pieces.size(); now = done.load()) done.wait(now);
  }

  static void hand_over(std::shared_ptr<Job> job);

 private:
  class Threads;
};

/// They are there from the first copy to the end of the process.
class BackgroundCopy::Job::Threads {
 public:
  Threads() {
    const auto cores = std::max(2U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < std::min(kMostThreads, cores - 1); ++i) std::thread([this] { run(); }).detach();
  }
  [[nodiscard]] bool are_here() const { return process_ == ::getpid(); }
  void add(std::shared_ptr<Job> job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    added_.notify_all();
  }

 private:
  [[noreturn]] void run() {
    for (;;) take()->work();
  }
  std::shared_ptr<Job> take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (!jobs_.empty() && jobs_.front()->next >= jobs_.front()->pieces.size()) jobs_.pop_front();
      if (!jobs_.empty()) return jobs_.front();
      added_.wait(lock);
    }
  }

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::shared_ptr<Job>> jobs_;
};

/// A fork of a process with threads has none: who waits there copies alone.
void BackgroundCopy::Job::hand_over(std::shared_ptr<Job> job) {
  static auto* const threads = new Threads;
  if (threads->are_here()) threads->add(std::move(job));
}

BackgroundCopy::BackgroundCopy(const std::vector<CopyPart>& parts) {
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.from.size();
  if (bytes < kWorthAThread) {
    for (const auto& [to, from] : parts) {
      if (!from.empty()) std::memcpy(to, from.data(), from.size());
    }
    return;
  }
  job_ = std::make_shared<Job>(pieces_of(parts));
  Job::hand_over(job_);
}

BackgroundCopy::~BackgroundCopy() {
  if (job_ && job_->process == ::getpid()) job_->wait();
}

void BackgroundCopy::wait() {
  if (!job_) return;
  if (job_->process != ::getpid())
    job_ = std::make_shared<Job>(job_->pieces);  // the parent's threads copy for the parent
  job_->wait();
}

}  // namespace taas::data
