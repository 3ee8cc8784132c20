#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "taas/dataset.hpp"
#include "training/making/data_task.hpp"

namespace taas {

/// What a data worker is asked for: the batch `turn`, counted from 0, of one logical worker's shard of a stream. Equal
/// tasks are equal bytes, and give equal batches.
struct StreamTask {
  DataSeeds seeds;
  std::uint64_t world_size = 1;
  std::uint64_t worker = 0;
  std::uint64_t num_workers = 1;
  std::uint64_t turn = 0;

  [[nodiscard]] std::string to_bytes() const;
  /// Nothing for bytes of another release.
  static std::optional<StreamTask> from_bytes(std::string_view bytes);
  /// What all tasks of this shard have in common.
  static std::string_view shard_in(std::string_view bytes);

  [[nodiscard]] Shard shard() const;
  /// Of the batch in the epoch, as DataSeeds::of_batch counts it.
  [[nodiscard]] std::uint64_t number() const { return turn * num_workers + worker; }
};

}  // namespace taas
