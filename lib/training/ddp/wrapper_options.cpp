#include "training/ddp/wrapper_options.hpp"

#include <algorithm>
#include <string>

#include "taas/error.hpp"
#include "training/ddp/module_tensors.hpp"

namespace taas {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr double kDefaultBucketMiB = 25;
constexpr std::int64_t kFirstBucketBytes = kMiB;

std::int64_t bytes_of(double mib, const std::string& option) {
  if (!(mib > 0)) throw InvalidArgument(option + " must be above 0, not " + std::to_string(mib));
  return static_cast<std::int64_t>(mib * static_cast<double>(kMiB));
}

void set_limits(ReducerOptions& result, const DistributedDataParallelOptions& options) {
  const auto& list = options.bucket_cap_mb_list;
  for (const double cap : list) result.bucket_bytes_list.push_back(bytes_of(cap, "bucket_cap_mb_list"));
  const bool is_default = list.empty() && !options.bucket_cap_mb;
  const auto& bytes = result.bucket_bytes_list;
  result.bucket_bytes = bytes.empty() ? bytes_of(options.bucket_cap_mb.value_or(kDefaultBucketMiB), "bucket_cap_mb")
                                      : *std::max_element(bytes.begin(), bytes.end());
  result.first_bucket_bytes = is_default ? kFirstBucketBytes : result.bucket_bytes;
}

void check_floating(const std::optional<at::ScalarType>& type, const std::string& name) {
  if (!type || at::isFloatingType(*type)) return;
  throw InvalidArgument("mixed_precision." + name + " must be a floating point type such as at::kBFloat16, not " +
                        at::toString(*type));
}

void check_precision(const DistributedDataParallelOptions& options) {
  if (!options.mixed_precision) return;
  check_floating(options.mixed_precision->param_dtype, "param_dtype");
  check_floating(options.mixed_precision->reduce_dtype, "reduce_dtype");
  check_floating(options.mixed_precision->buffer_dtype, "buffer_dtype");
  if (options.find_unused_parameters && !options.static_graph) {
    throw InvalidArgument("mixed_precision and find_unused_parameters do not go together: set static_graph, or use " +
                          std::string("taas::Autocast"));
  }
  if (!options.delay_all_reduce_named_params.empty()) {
    throw InvalidArgument("mixed_precision and delay_all_reduce_named_params do not go together: leave one out");
  }
}

/// Views into buckets could not become gradients of the parameters' own types.
void set_precision(ReducerOptions& result, const MixedPrecision& precision) {
  result.param_dtype = precision.param_dtype;
  if (precision.param_dtype) result.gradient_as_bucket_view = false;
}

}  // namespace

void check_options(const torch::nn::Module& module, const DistributedDataParallelOptions& options) {
  const auto& delayed = options.delay_all_reduce_named_params;
  if (delayed.empty() != options.param_to_hook_all_reduce.empty()) {
    throw InvalidArgument("delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time");
  }
  check_precision(options);
  check_names(module, options.parameters_and_buffers_to_ignore, "parameters_and_buffers_to_ignore");
  check_names(module, delayed, "delay_all_reduce_named_params");
  if (!delayed.empty()) check_names(module, {options.param_to_hook_all_reduce}, "param_to_hook_all_reduce");
}

ReducerOptions reducer_options(const torch::nn::Module& module, const DistributedDataParallelOptions& options) {
  ReducerOptions result;
  set_limits(result, options);
  result.find_unused_parameters = options.find_unused_parameters;
  result.static_graph = options.static_graph;
  result.gradient_as_bucket_view = options.gradient_as_bucket_view;
  result.skip_all_reduce_unused_params = options.skip_all_reduce_unused_params;
  result.batched_grad_copy = options.batched_grad_copy;
  result.lazy_bucket_allocation = options.lazy_bucket_allocation;
  if (options.mixed_precision) set_precision(result, *options.mixed_precision);
  result.share_memory = options.init_sync;  // without it nothing is agreed upon
  result.broadcast_buffers = syncs_buffers_in_forward(options);
  result.module_name = module.name();
  return result;
}

bool syncs_buffers_in_forward(const DistributedDataParallelOptions& options) {
  return options.forward_sync_buffers.value_or(options.broadcast_buffers);
}

bool syncs_buffers_at_start(const DistributedDataParallelOptions& options) {
  return options.forward_sync_buffers.has_value() || options.broadcast_buffers;
}

}  // namespace taas
