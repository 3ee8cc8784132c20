#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace taas {

/// The options of torch.nn.parallel.DistributedDataParallel, with its names, defaults, order and results.
struct DistributedDataParallelOptions {
  /// Buffers (batch norm's running statistics) become those of rank 0 at construction and before each forward.
  bool broadcast_buffers = true;
  /// Check at construction that all ranks have the same parameters, and give all those of rank 0.
  bool init_sync = true;
  /// Size of a gradient bucket in MiB; unset means 25, with a first bucket of 1 MiB.
  std::optional<double> bucket_cap_mb = std::nullopt;
  /// Parameters that get no gradient in an iteration are found from the outputs of forward, instead of being an error.
  bool find_unused_parameters = false;
  /// Gradients live in the buckets: one copy of them less. zero_grad() has to be the wrapper's or that of taas::SGD and
  /// the like, not that of torch::optim's optimizers.
  bool gradient_as_bucket_view = false;
  /// The set of used parameters and the graph are the same in every iteration.
  bool static_graph = false;
  /// Buckets of which no parameter was found to be used are not reduced; these must be the same on all ranks.
  bool skip_all_reduce_unused_params = false;
  /// A size in MiB for each bucket, the last one for all further; instead of bucket_cap_mb.
  std::vector<double> bucket_cap_mb_list = {};
  /// Gradients go to a bucket, and back, in one operation for all of it. Needs libtorch 2.15.
  bool batched_grad_copy = false;
  /// As broadcast_buffers, whose place it takes, but only for forward: at construction buffers become those of rank 0.
  std::optional<bool> forward_sync_buffers = std::nullopt;
  /// Buckets have memory only during backward. Needs libtorch 2.15.
  bool lazy_bucket_allocation = false;
  /// Names of parameters and buffers (as named_parameters() has them) that stay as they are on each rank: neither
  /// compared, nor broadcast, nor reduced.
  std::vector<std::string> parameters_and_buffers_to_ignore = {};
};

/// What a buffer hook is given: the buffers that are synchronised, by name.
using NamedBuffers = std::vector<std::pair<std::string, at::Tensor>>;
/// Instead of the broadcast from rank 0, after forward. Backward waits for the futures that it returns.
using BufferHook = std::function<std::vector<c10::intrusive_ptr<c10::ivalue::Future>>(const NamedBuffers&)>;

/// What DDP has noted of itself, with the names of Python's _get_ddp_logging_data. Times are in nanoseconds. Before the
/// first measured iteration there are only the fields of the construction.
struct DataParallelLog {
  std::map<std::string, std::string> texts;     ///< "rebuilt_bucket_sizes", "bucket_sizes", "comm_hook", …
  std::map<std::string, std::int64_t> numbers;  ///< "avg_forward_compute_time", "unused_parameter_size", …
};

}  // namespace taas
