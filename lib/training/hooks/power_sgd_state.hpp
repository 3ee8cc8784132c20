#pragma once

#include <map>
#include <optional>

#include "taas/collectives.hpp"
#include "taas/comm_hooks.hpp"
#include "training/hooks/numpy_random.hpp"

namespace taas {

/// What the two hooks of PowerSGD share.
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
  void resume(std::map<std::size_t, Memory> kept, NumpyRandomState drawn, std::int64_t from);
  /// False where no factors of these sizes are there from the iteration before: then there is room for them.
  bool reuse_factors(Memory& memory, at::IntArrayRef p, at::IntArrayRef q, const at::TensorOptions& type) const;
  /// After an iteration without warm start.
  void forget_factors(Memory& memory) const;
  void log_stats(const GradBucket& bucket);
  CompressionStats stats() const;

  ProcessGroup group;
  PowerSGDOptions options;
  NumpyRandomState random;
  std::map<std::size_t, Memory> memories;
  std::int64_t iteration = 0;
  std::int64_t numel_before = 0;
  std::int64_t numel_after = 0;

 private:
  std::int64_t next_report_ = 0;
  bool buckets_are_new_ = false;
};

}  // namespace taas
