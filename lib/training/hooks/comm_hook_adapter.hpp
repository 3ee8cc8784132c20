#pragma once

#include <ATen/core/TensorBody.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>
#include <vector>

#include "taas/comm_hooks.hpp"

namespace taas {

/// A hook as the reducer wants it. What the hook gives is checked: the reducer would take memory for gradients that is
/// none, or fail with an error of libtorch's own.
class CommHookAdapter : public c10d::CommHookInterface {
 public:
  explicit CommHookAdapter(std::shared_ptr<CommHook> hook) : hook_(std::move(hook)) {}

  /// Buckets whose results were not asked for, because a backward failed, are not waited for any longer.
  void begin_backward() { running_.clear(); }

  /// The reducer's bucket ends with the call: the hook gets a copy, of the same tensors.
  GradientFuture runHook(c10d::GradBucket& bucket) override;

  /// Of the buckets in the order in which they were run. Throws InvalidArgument for what is not like the bucket.
  at::Tensor parseHookResult(const c10::IValue& result) override;

 private:
  struct RunningBucket {
    std::size_t index;
    std::vector<std::int64_t> shape;
    at::TensorOptions options;
  };

  [[noreturn]] void refuse(const RunningBucket& bucket, const std::string& given) const;

  std::shared_ptr<CommHook> hook_;
  std::deque<RunningBucket> running_;
};

}  // namespace taas
