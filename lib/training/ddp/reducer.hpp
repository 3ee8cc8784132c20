#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taas/comm_hooks.hpp"
#include "taas/process_group.hpp"
#include "training/ddp/parameter_check.hpp"

namespace c10d {
class Reducer;
class Work;
}  // namespace c10d

namespace taas {

struct ReducerOptions {
  std::int64_t bucket_bytes = 0;
  std::int64_t first_bucket_bytes = 0;
  std::vector<std::int64_t> bucket_bytes_list = {};  ///< a limit for each bucket; empty: the two above
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool gradient_as_bucket_view = false;
  bool skip_all_reduce_unused_params = false;
  bool batched_grad_copy = false;
  bool lazy_bucket_allocation = false;
  std::optional<at::ScalarType> param_dtype = std::nullopt;  ///< of gradients; unset: those of the parameters
  bool share_memory = false;                                 ///< for small sums of ranks on one machine; a collective
  bool broadcast_buffers = false;                            ///< only for the log
  std::string module_name = {};                              ///< only for the log
};

/// The parameters in each bucket until the first backward is over, by their place in `tensors`. All of a bucket are of
/// one device and one type.
std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& tensors,
                                                    const std::vector<bool>& expect_sparse,
                                                    const ReducerOptions& options);

/// Averages gradients over the ranks while backward runs. The one place that knows c10d::Reducer, whose constructor
/// grows from release to release; an own reducer can stand beside it behind the same functions.
class Reducer {
 public:
  /// `parameters` need gradients, each is there once; `expect_sparse` says for each whether its gradient is sparse.
  Reducer(const ProcessGroup& group, const std::vector<NamedTensor>& parameters, const std::vector<bool>& expect_sparse,
          const ReducerOptions& options);
  ~Reducer();

  void start_forward();
  /// Once, after the first backward, buckets are made anew in the order in which gradients came. A collective.
  void rebuild_buckets();
  /// The next backward will be reduced; `outputs` only where unused parameters are to be found.
  void prepare_for_backward(const std::vector<at::Tensor>& outputs);
  /// Static graph: at the end of the first backward, reduces everything at once.
  void delay_all_reduce();
  /// Before the first forward.
  void set_static_graph();

  /// Once, before the first backward.
  void register_comm_hook(const std::shared_ptr<CommHook>& hook);
  void register_comm_hook(BuiltinCommHook hook);
  /// Backward waits for `futures` before it is over.
  void wait_in_backward(const std::vector<GradientFuture>& futures);

  /// Join: for the logger.
  void note_join();
  /// Join: the sum of the ranks that have inputs in this iteration, on its way. Gradients are divided by it, or by the
  /// world size for `divide_by_world_size`. None: by the world size, from here on.
  void set_active_ranks(c10::intrusive_ptr<c10d::Work> sum, bool divide_by_world_size);
  /// Join: takes part in the reductions of a backward of other ranks, with zeros. `keep`: parameters get the averages,
  /// and those that no rank used get none.
  void shadow_backward(const ProcessGroup& group, bool find_unused_parameters, bool keep);

  /// From the next iteration on; buckets are made anew in it.
  void use_group(const ProcessGroup& group);
  void remove_autograd_hooks();
  /// Throws Exception when the last backward was not able to reduce all.
  void check_finalized();

  /// Backward ends without waiting for the reduction; finalize() waits and writes the gradients.
  void require_manual_finalization(bool required);
  bool should_finalize_after_backward() const;
  void finalize();

  /// Measures the first ten iterations and then each `rate`th; without a call none is.
  void measure_every(int rate);
  std::map<std::string, std::string> logged_texts() const;
  std::map<std::string, std::int64_t> logged_numbers() const;

  c10d::Reducer& native() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace taas
