#pragma once

#include <map>
#include <optional>
#include <random>

#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"

namespace taas {

/// numpy.random.RandomState(seed).randint(1e9), from which PowerSGD draws the seeds of its factors in Python.
inline std::uint32_t next_seed(std::mt19937& random) {
  constexpr std::uint32_t kLargest = 999'999'999, kMask = (1U << 30U) - 1;
  while (true) {
    const auto value = static_cast<std::uint32_t>(random()) & kMask;
    if (value <= kLargest) return value;
  }
}

/// What PowerSGD remembers.
class PowerSGDState::Impl {
 public:
  Impl(ProcessGroup group_of_model, const PowerSGDOptions& given);

  /// What is kept for a bucket, by its index.
  struct Memory {
    at::Tensor error;  ///< what compression took from the gradients in the iteration before; undefined before the first
    at::Tensor p;      ///< the factors of this iteration, and with warm start of the one before
    at::Tensor q;
  };

  bool has_begun() const { return iteration >= options.start_powerSGD_iter && !buckets_are_new_; }
  /// What is done before it has begun.
  GradientFuture plain_average(const GradBucket& bucket);
  /// Nothing for a tensor without elements.
  std::optional<Work> start_sum(at::Tensor& tensor) const;
  /// Once in each iteration: with its last bucket.
  void count(const GradBucket& bucket);
  /// Adds the error of the iteration before to `gradients`, and returns a copy of the sum; without error feedback it
  /// does nothing.
  at::Tensor add_error(Memory& memory, const at::Tensor& gradients) const;
  /// Remembers what `decompressed` lacks of that copy.
  void keep_error(Memory& memory, const at::Tensor& copy, const at::Tensor& decompressed) const;
  /// Goes on from there, but for one iteration of plain averages: buckets are made anew after the first one of a
  /// wrapper, and only then are those that the memories are for.
  void resume(std::map<std::size_t, Memory> kept, const std::mt19937& drawn, std::int64_t from);
  /// False where no factors of these sizes are there from the iteration before: then there is room for them.
  bool reuse_factors(Memory& memory, at::IntArrayRef p, at::IntArrayRef q, const at::TensorOptions& type) const;
  /// After an iteration without warm start.
  void forget_factors(Memory& memory) const;
  void log_stats(const GradBucket& bucket);
  CompressionStats stats() const;

  ProcessGroup group;
  PowerSGDOptions options;
  std::mt19937 random;
  std::map<std::size_t, Memory> memories;
  std::int64_t iteration = 0;
  std::int64_t numel_before = 0;
  std::int64_t numel_after = 0;

 private:
  std::int64_t next_report_ = 0;
  bool buckets_are_new_ = false;
};

}  // namespace taas
