#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "taas/collectives.hpp"
#include "training/ddp/precision/grad_accumulator.hpp"
#include "training/zero/shard_layout.hpp"

namespace taas {

struct GradientBucketOptions {
  std::optional<double> bucket_cap_mb{};  ///< as in DistributedDataParallelOptions
  bool find_unused_parameters = false;
  /// Each rank is sent its slice alone; the buckets are `slices` then. Otherwise they are those of
  /// DistributedDataParallel, and summed as there.
  bool reduce_scatter = false;
};

/// Averages gradients over the ranks while backward runs, and keeps none: a parameter's gradient is taken out of its
/// `grad` into a bucket, and the bucket's memory is let go as soon as its average was delivered.
class GradientBuckets {
 public:
  /// A parameter's averaged gradient from element `begin` on, in the order of the parameter's memory; a view of memory
  /// that is going to be freed.
  using Deliver = std::function<void(std::size_t parameter, std::int64_t begin, const at::Tensor& average)>;

  GradientBuckets(const ProcessGroup& group, std::vector<at::Tensor> parameters, std::vector<BucketLayout> slices,
                  const GradientBucketOptions& options, Deliver deliver);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  /// Without it gradients stay where backward leaves them. Returns what it was.
  bool set_sync(bool sync) { return std::exchange(sync_, sync); }
  /// Called before the first collective of each backward; returns what gradients are divided by.
  void at_start(std::function<int()> start) { at_start_ = std::move(start); }
  /// A backward in which no gradient comes: takes part in the collectives of the other ranks.
  void shadow_backward();

 private:
  struct Bucket {
    BucketLayout layout;
    std::size_t missing = 0;
    at::Tensor memory{};  ///< of this backward
    at::Tensor average{};
    std::optional<Work> work{};
  };

  void use_buckets(const std::vector<std::vector<std::size_t>>& assignment);
  void use_layouts(std::vector<BucketLayout> layouts);
  void add_hook(std::size_t parameter);
  void on_gradient(std::size_t parameter);
  void begin();
  void take(std::size_t parameter);
  void take_accumulated();
  at::Tensor& memory_of(Bucket& bucket);
  void start_ready();
  void start(Bucket& bucket);
  void deliver_next();
  void finish();
  std::vector<bool> used_anywhere();
  void check_all_came() const;
  void rebuild();
  std::vector<std::vector<std::size_t>> assignment_in_order() const;
  void reset();

  ProcessGroup group_;
  std::vector<at::Tensor> parameters_;
  GradientBucketOptions options_;
  Deliver deliver_;
  std::vector<std::pair<GradAccumulator, std::uintptr_t>> hooks_;
  std::vector<Bucket> buckets_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  // of each parameter: bucket, place in it
  std::mutex mutex_;
  std::function<int()> at_start_;
  int divisor_ = 1;
  bool sync_ = true;
  bool running_ = false;            // a backward with a gradient
  bool rebuilt_ = false;            // buckets are in the order in which gradients come
  std::vector<std::size_t> order_;  // in which they came in the first backward
  std::vector<bool> came_;
  std::vector<bool> used_;                   // on any rank; empty: all
  bool shadow_ = false;                      // a backward of the other ranks alone
  std::size_t started_ = 0, delivered_ = 0;  // buckets
};

}  // namespace taas
