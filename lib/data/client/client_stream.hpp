#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "data/client/client.hpp"

namespace taas::data {

/// One pass over a loader, as the client sees it: tasks that are not here yet, and what is here and was not taken. All
/// calls come under the client's mutex.
class ClientStream {
 public:
  explicit ClientStream(Definition definition) : definition_(std::move(definition)) {}

  [[nodiscard]] const std::string& digest() const { return definition_.digest; }

  /// The number of the task that it becomes.
  std::uint64_t submit(std::string payload);
  [[nodiscard]] const std::shared_ptr<const std::string>& payload(std::uint64_t number) const;
  /// A worker is sent the task; not for the first time: it is hedged.
  bool note_sent(std::uint64_t number);
  /// A worker cannot make it, and says why.
  void note_returned(std::uint64_t number, const std::string& why) { returned_[number] = why; }
  [[nodiscard]] std::string why_returned(std::uint64_t number) const;

  /// It is here; who waits for just this one is woken.
  void keep(std::uint64_t number, Outcome outcome);
  /// The next one is here.
  [[nodiscard]] bool has_next() const { return kept_.contains(taken_); }
  [[nodiscard]] std::uint64_t next() const { return taken_; }
  /// The loop has asked for just this one, and did not find it.
  [[nodiscard]] bool is_awaited(std::uint64_t number) const { return waits_ && taken_ == number; }
  /// From now on the loop waits; false: it did before.
  bool begin_to_wait() { return !std::exchange(waits_, true); }
  /// Until something has changed; false: it is too late.
  bool wait(std::unique_lock<std::mutex>& lock, Instant until);
  /// The next one, which is here; counted in the client's totals too.
  Outcome take(Statistics& totals);
  void count_waited(double seconds) { statistics_.waited_seconds += seconds; }

  void close();
  [[nodiscard]] bool is_closed() const { return closed_; }
  void wake() { changed_.notify_all(); }
  /// With `waiting`, but nothing of workers.
  [[nodiscard]] Statistics statistics() const;

 private:
  Definition definition_;
  std::map<std::uint64_t, std::shared_ptr<const std::string>> payloads_;  // of tasks that are not here yet
  std::set<std::uint64_t> sent_;                                          // those of them that a worker had once
  std::map<std::uint64_t, std::string> returned_;                         // why a worker could not make it
  std::map<std::uint64_t, Outcome> kept_;
  std::uint64_t submitted_ = 0;
  std::uint64_t taken_ = 0;
  bool waits_ = false;
  bool closed_ = false;
  Statistics statistics_;
  std::condition_variable changed_;
};

/// Of a batch; 0 for everything else.
std::size_t payload_of(const Outcome& outcome);

}  // namespace taas::data
