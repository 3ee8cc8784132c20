#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "training/making/data_batch.hpp"

namespace taas {

/// Batches that are made and wait for their ranks, by the bytes of their tasks. Not more than `most_bytes` of memory.
class PreparedBatches {
 public:
  explicit PreparedBatches(std::size_t most_bytes) : room_(most_bytes) {}

  /// The last batch did not fit, or one as large as the usual one would not.
  [[nodiscard]] bool is_full() const;
  /// Let go of where there is no room.
  void put(const std::string& task, MadeBatch batch);
  /// The batch of this task, once: each rank asks for its own.
  std::optional<MadeBatch> take(const std::string& task);

  /// Since the beginning, those that were taken included.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::unordered_map<std::string, MadeBatch> batches_;
  std::size_t room_;
  bool did_not_fit_ = false;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace taas
