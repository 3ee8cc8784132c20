#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas {

/// What a data worker is asked for: one batch. Equal tasks are equal bytes, and give equal batches.
struct DataTask {
  std::uint64_t seed = 0;
  std::vector<std::size_t> indices;

  [[nodiscard]] std::string to_bytes() const;
  /// Nothing for bytes of another release.
  static std::optional<DataTask> from_bytes(std::string_view bytes);
};

/// Where the seeds of one rank's epoch over one loader come from.
struct DataSeeds {
  std::uint64_t initial = 0;  ///< what the program was seeded with
  std::uint64_t rank = 0;
  std::uint64_t loader = 0;  ///< digest of its name
  std::uint64_t epoch = 0;

  [[nodiscard]] std::uint64_t of_batch(std::uint64_t number) const;
  /// Of a logical worker's pass over its shard, before its first batch.
  [[nodiscard]] std::uint64_t of_worker(std::uint64_t worker) const;
};

std::uint64_t digest_of_text(std::string_view text);

/// Batches that follow each other, as one number: of those before and the next one.
std::uint64_t chain_digest(std::uint64_t before, std::uint64_t payload, std::string_view description);

}  // namespace taas
