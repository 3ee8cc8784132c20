#pragma once

#include <cstdint>
#include <map>

#include "run/events/data_events.hpp"

namespace taas::run {

/// How far the data workers of one node are with --loader. Pure.
class LoaderPreparation {
 public:
  /// `buffer_bytes` is what these workers may hold together.
  LoaderPreparation(int workers, std::int64_t buffer_bytes) : workers_(workers), buffer_bytes_(buffer_bytes) {}

  /// What a worker tells counts from its start: a later word replaces the former.
  void update(const DataPrepared& prepared) { of_[prepared.worker] = prepared; }
  /// A worker has ended, and with it what it had made.
  void forget(int worker) { of_.erase(worker); }
  [[nodiscard]] bool began(int worker) const { return of_.contains(worker); }
  /// All are done, or the memory is full.
  [[nodiscard]] bool complete() const;

 private:
  int workers_;
  std::int64_t buffer_bytes_;
  std::map<int, DataPrepared> of_;
};

}  // namespace taas::run
