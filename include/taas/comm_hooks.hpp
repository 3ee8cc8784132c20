#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "taas/process_group.hpp"

namespace c10d {
class GradBucket;
}

namespace taas {

/// The gradients that are reduced together. A handle: copies mean the same bucket, and a hook keeps one in whatever it
/// has to do when the communication is through.
class GradBucket {
 public:
  /// Unique among the buckets; they are reduced in this order, from 0.
  std::size_t index() const;
  /// Whether no other bucket follows in this backward.
  bool is_last() const;
  /// All gradients of the bucket, flat: (numel,), of one dtype and on one device. They are those of this rank, not yet
  /// divided by the world size.
  at::Tensor buffer() const;
  /// From here on buffer() and gradients() are in `buffer`: (numel,).
  void set_buffer(at::Tensor buffer);
  /// One view into the buffer for each parameter, of its shape.
  std::vector<at::Tensor> gradients() const;
  std::vector<at::Tensor> parameters() const;

  explicit GradBucket(std::shared_ptr<c10d::GradBucket> bucket) : bucket_(std::move(bucket)) {}

 private:
  std::shared_ptr<c10d::GradBucket> bucket_;
};

/// Holds a tensor, once the communication for it is through.
using GradientFuture = c10::intrusive_ptr<c10::ivalue::Future>;

/// How DistributedDataParallel reduces a bucket of gradients: given to its register_comm_hook() before the first
/// backward. One hook is for one model.
class CommHook {
 public:
  virtual ~CommHook() = default;
  /// Called in each backward, as soon as all gradients of the bucket are there, for one bucket after the other. Starts
  /// the communication and returns at once; the future's tensor has the shape and device of bucket.buffer(), floating
  /// point numbers where that has them, and becomes the gradients; anything else is an InvalidArgument in backward.
  virtual GradientFuture run(GradBucket& bucket) = 0;
  /// For the logger and for messages.
  virtual std::string name() const { return "CommHook"; }
};

/// A future that is complete.
GradientFuture completed(const at::Tensor& tensor);
/// Divides `tensor` by the world size and starts the sum over the group, in place.
GradientFuture all_reduce_average(const ProcessGroup& group, const at::Tensor& tensor);
/// The future of what `next` makes of the tensor (InvalidArgument where `future` is null). It runs where the
/// communication ends, maybe on a thread of the backend: it must not wait for another collective.
GradientFuture then(const GradientFuture& future, std::function<at::Tensor(at::Tensor)> next);
/// The hook that returns `reduce(bucket)`, which may communicate and wait.
std::shared_ptr<CommHook> make_comm_hook(std::function<at::Tensor(GradBucket&)> reduce);

/// The average of the gradients as 16 bit numbers, divided before they are summed: equal to Python's hooks of these
/// names to the bit. `group` is that of the model.
std::shared_ptr<CommHook> fp16_compress_hook(ProcessGroup group);
std::shared_ptr<CommHook> bf16_compress_hook(ProcessGroup group);

}  // namespace taas
