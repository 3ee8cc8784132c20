#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace taas {

/// Training in types of fewer bits, as _MixedPrecision in torch.nn.parallel.distributed. Outside of forward and
/// backward parameters and gradients are of their own types: for the optimizer and for checkpoints. What is unset stays
/// as it is. Only floating point tensors change; each type set here is one of floating point.
struct MixedPrecision {
  /// Of parameters, also frozen ones, of gradients and of the inputs of forward, until backward has reduced.
  std::optional<c10::ScalarType> param_dtype = std::nullopt;
  /// In which gradients are summed over the ranks; unset: that in which backward computes them.
  std::optional<c10::ScalarType> reduce_dtype = std::nullopt;
  /// Of buffers, from the construction of the wrapper on.
  std::optional<c10::ScalarType> buffer_dtype = std::nullopt;
};

/// The options of torch.nn.parallel.DistributedDataParallel, with its names, defaults and results.
struct DistributedDataParallelOptions {
  /// Size of a gradient bucket in MiB; unset means 25, with a first bucket of 1 MiB.
  std::optional<double> bucket_cap_mb = std::nullopt;
  /// Parameters that get no gradient in an iteration are found from the outputs of forward, instead of being an error.
  bool find_unused_parameters = false;
  /// The set of used parameters and the graph are the same in every iteration.
  bool static_graph = false;
  /// Gradients live in the buckets: one copy of them less. zero_grad() has to be the wrapper's or that of taas::SGD and
  /// the like, not that of torch::optim's optimizers.
  bool gradient_as_bucket_view = false;
  /// Buffers (batch norm's running statistics) become those of rank 0 at construction and before each forward.
  bool broadcast_buffers = true;
  /// Check at construction that all ranks have the same parameters, and give all those of rank 0.
  bool init_sync = true;
  /// As broadcast_buffers, whose place it takes, but only for forward: at construction buffers become those of rank 0.
  std::optional<bool> forward_sync_buffers = std::nullopt;
  /// A size in MiB for each bucket, the last one for all further; instead of bucket_cap_mb.
  std::vector<double> bucket_cap_mb_list = {};
  /// Names of parameters and buffers (as named_parameters() has them) that stay as they are on each rank: neither
  /// compared, nor broadcast, nor reduced.
  std::vector<std::string> parameters_and_buffers_to_ignore = {};
  /// Names of parameters whose gradients, float32 in one flat buffer, are reduced together once that of
  /// param_to_hook_all_reduce is ready. Both or none.
  std::vector<std::string> delay_all_reduce_named_params = {};
  std::string param_to_hook_all_reduce = {};
  /// Buckets of which no parameter was found to be used are not reduced; these must be the same on all ranks.
  bool skip_all_reduce_unused_params = false;
  /// Gradients go to a bucket, and back, in one operation for all of it. Needs libtorch 2.15.
  bool batched_grad_copy = false;
  /// Buckets have memory only during backward. Needs libtorch 2.15.
  bool lazy_bucket_allocation = false;
  /// Not together with find_unused_parameters (static_graph instead), delay_all_reduce_named_params, a communication
  /// hook or a join; with a param_dtype gradient_as_bucket_view has no effect. In a scope of no_sync parameters stay of
  /// param_dtype until the backward that reduces.
  std::optional<MixedPrecision> mixed_precision = std::nullopt;
};

/// What a buffer hook is given: the buffers that are synchronised, by name.
using NamedBuffers = std::vector<std::pair<std::string, at::Tensor>>;
/// Instead of the broadcast from rank 0. Backward waits for the futures that it returns.
using BufferHook = std::function<std::vector<c10::intrusive_ptr<c10::ivalue::Future>>(const NamedBuffers&)>;
enum class BufferHookLocation { kBeforeForward, kAfterForward };

/// What DDP has noted of itself, with the names of Python's _get_ddp_logging_data. Times are in nanoseconds. Before the
/// first measured iteration there are only the fields of the construction.
struct DataParallelLog {
  std::map<std::string, std::string> texts;     ///< "rebuilt_bucket_sizes", "bucket_sizes", "comm_hook", …
  std::map<std::string, std::int64_t> numbers;  ///< "avg_forward_compute_time", "unused_parameter_size", …
};

}  // namespace taas
