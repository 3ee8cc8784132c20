#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <memory>

#include "taas/process_group.hpp"

namespace taas {

enum class ReduceOp { kSum, kAverage, kMin, kMax, kProduct };

/// A collective under way. The tensors given to it must not be touched before wait() has returned. Dropping the handle
/// does not stop the collective.
class Work {
 public:
  /// Under gloo: returns when the result is in place, and throws CommunicationError when a rank is gone or the group's
  /// timeout has passed.
  ///
  /// Under nccl, for tensors on a GPU: orders the result before later work of the current stream, and returns at once.
  /// What goes wrong on the GPU later is no exception: when a rank is gone or the group's timeout has passed, torch's
  /// watchdog ends this process, and no later work of the stream is done with half a result
  /// (TORCH_NCCL_ASYNC_ERROR_HANDLING=3).
  ///
  /// May be called more than once, also for other streams.
  void wait();

  /// Returns when the result is in place, under each backend; throws CommunicationError when it is not within
  /// `timeout`, or as wait() does. The collective goes on after a timeout: wait again, or end the process.
  void wait(std::chrono::milliseconds timeout);

  class Impl;
  explicit Work(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

// Collectives: every rank of the group calls the same ones in the same order, with tensors of the same shape and dtype.
// Tensors are dense and contiguous, on group.device() (CPU tensors work under both backends). Each function returns
// with the result in place; the one with _async in its name returns at once. InvalidArgument: a tensor or a rank that
// does not fit; CommunicationError: see Work::wait.

/// `tensor` becomes the element-wise reduction over all ranks, the same to the bit on each. Types: Byte, Char, Int,
/// Long, Half, BFloat16, Float, Double; complex ones with kSum and kAverage; Bool with kMin and kMax. kAverage:
/// floating point only; 16 bit numbers are divided before they are summed, so that the sum cannot overflow.
void all_reduce(const ProcessGroup& group, at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);
Work all_reduce_async(const ProcessGroup& group, at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);

/// `tensor` becomes that of rank `root`.
void broadcast(const ProcessGroup& group, at::Tensor& tensor, int root = 0);
Work broadcast_async(const ProcessGroup& group, at::Tensor& tensor, int root = 0);

/// `output` (world_size, *input.shape): row r becomes the input of rank r.
void all_gather(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input);
Work all_gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input);

/// `input` (world_size, *output.shape): `output` of rank r becomes the reduction over all ranks of row r.
void reduce_scatter(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input,
                    ReduceOp op = ReduceOp::kSum);
Work reduce_scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input,
                          ReduceOp op = ReduceOp::kSum);

/// As all_gather, on rank `root` alone; elsewhere `output` is not read and may be an undefined tensor.
void gather(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root = 0);
Work gather_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root = 0);

/// `input` (world_size, *output.shape) of rank `root`: `output` of rank r becomes row r; elsewhere `input` is not read
/// and may be an undefined tensor.
void scatter(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root = 0);
Work scatter_async(const ProcessGroup& group, at::Tensor& output, const at::Tensor& input, int root = 0);

/// Point to point; `tag` tells messages between the same two ranks apart (gloo only: nccl keeps the order of the
/// calls). Under gloo, ranks that exchange tensors may all begin with send_async(). Under nccl one of two has to begin
/// with recv(): from some size on, a message waits until the other rank receives it.
void send(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag = 0);
Work send_async(const ProcessGroup& group, const at::Tensor& tensor, int destination, int tag = 0);
void recv(const ProcessGroup& group, at::Tensor& tensor, int source, int tag = 0);
Work recv_async(const ProcessGroup& group, at::Tensor& tensor, int source, int tag = 0);

/// Returns when every rank has called it.
void barrier(const ProcessGroup& group);

}  // namespace taas
