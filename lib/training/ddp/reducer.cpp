#include "training/ddp/reducer.hpp"

#include <torch/csrc/distributed/c10d/debug.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/ddp/shared_memory.hpp"
#include "training/group/process_group_state.hpp"

// c10d::Reducer is public but not stable: these releases were compiled against. Its newer arguments all have defaults.
#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11
#error "lib/training/ddp/reducer.cpp knows the Reducer of torch 2.11 to 2.15: check its constructor against this torch"
#endif

namespace taas {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;
constexpr double kDefaultBucketMiB = 25;
constexpr std::int64_t kFirstBucketBytes = kMiB;

/// How large buckets may become.
struct BucketLimits {
  std::int64_t bytes = 0;
  std::int64_t first_bytes = 0;
  std::vector<std::int64_t> list = {};  ///< one for each bucket; empty: the two above
};

std::int64_t bytes_of(double mib, const std::string& option) {
  if (!(mib > 0)) throw InvalidArgument(option + " must be above 0, not " + std::to_string(mib));
  return static_cast<std::int64_t>(mib * static_cast<double>(kMiB));
}

BucketLimits limits_of(const DistributedDataParallelOptions& options) {
  BucketLimits limits;
  for (const double cap : options.bucket_cap_mb_list) limits.list.push_back(bytes_of(cap, "bucket_cap_mb_list"));
  const auto& list = limits.list;
  limits.bytes = list.empty() ? bytes_of(options.bucket_cap_mb.value_or(kDefaultBucketMiB), "bucket_cap_mb")
                              : *std::max_element(list.begin(), list.end());
  limits.first_bytes = list.empty() && !options.bucket_cap_mb ? kFirstBucketBytes : limits.bytes;
  return limits;
}

std::vector<std::size_t> first_limits(const DistributedDataParallelOptions& options) {
  const auto limits = limits_of(options);
  if (!limits.list.empty()) return {limits.list.begin(), limits.list.end()};
  if (!options.find_unused_parameters || options.static_graph) return {std::numeric_limits<std::int64_t>::max()};
  if (limits.first_bytes >= limits.bytes) return {static_cast<std::size_t>(limits.bytes)};
  return {static_cast<std::size_t>(limits.first_bytes), static_cast<std::size_t>(limits.bytes)};
}

/// The reducer keeps the names of unused parameters, not only their numbers, from debug level INFO on.
class NamedDiagnostics {
 public:
  NamedDiagnostics() : before_(c10d::debug_level()) {
    if (before_ == c10d::DebugLevel::Off) c10d::setDebugLevel(c10d::DebugLevel::Info);
  }
  ~NamedDiagnostics() { c10d::setDebugLevel(before_); }
  NamedDiagnostics(const NamedDiagnostics&) = delete;
  NamedDiagnostics& operator=(const NamedDiagnostics&) = delete;

 private:
  c10d::DebugLevel before_;
};

std::unordered_map<std::size_t, std::string> names_of(const std::vector<NamedTensor>& parameters) {
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) names[i] = parameters[i].first;
  return names;
}

/// Batched copies and lazy buckets are arguments of newer releases.
template <class Native, class... Arguments>
std::shared_ptr<Native> construct(const DistributedDataParallelOptions& options, Arguments&&... arguments) {
  if constexpr (std::is_constructible_v<Native, Arguments..., bool, bool>) {
    return std::make_shared<Native>(std::forward<Arguments>(arguments)..., options.batched_grad_copy,
                                    options.lazy_bucket_allocation);
  } else {
    if (options.batched_grad_copy || options.lazy_bucket_allocation) {
      throw ConfigError("batched_grad_copy and lazy_bucket_allocation need libtorch 2.15, this is " TORCH_VERSION);
    }
    return std::make_shared<Native>(std::forward<Arguments>(arguments)...);
  }
}

/// Without init_sync nothing is agreed upon.
std::shared_ptr<c10d::Reducer> construct_reducer(const ProcessGroup& group, const torch::nn::Module& module,
                                                 const std::vector<NamedTensor>& parameters,
                                                 const DistributedDataParallelOptions& options) {
  const NamedDiagnostics named;
  constexpr bool kPythonReducer = false;
  auto tensors = tensors_of(parameters);
  const auto sparse = expect_sparse(module, parameters);
  const auto limits = limits_of(options);
  return construct<c10d::Reducer>(options, tensors, first_buckets(tensors, sparse, options),
                                  options.init_sync ? with_shared_memory(group) : group.state().group, sparse,
                                  limits.bytes, options.find_unused_parameters, options.gradient_as_bucket_view,
                                  names_of(parameters), limits.first_bytes, options.skip_all_reduce_unused_params,
                                  kPythonReducer, limits.list);
}

bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// "rank 0: b, c", from "… did not receive grad for rank 0: b, c Parameter indices which did not …".
std::string unmarked(const std::string& text) {
  const std::string_view mark = "did not receive grad for ";
  const auto at = text.find(mark);
  if (at == std::string::npos) return "this rank";
  const auto begin = at + mark.size();
  return text.substr(begin, text.find(" Parameter indices", begin) - begin);
}

std::string unfinished(const std::string& text, bool static_graph) {
  const auto who = "parameters that got no gradient in the last backward on " + unmarked(text) + ": ";
  return who + (static_graph ? "they had one in the first iteration, and static_graph is for the same parameters in "
                               "each; use them in the loss, or leave static_graph out"
                             : "use them in the loss, or set find_unused_parameters");
}

/// "Parameter at index 3 with name conv.weight has been marked as ready twice." → "parameter conv.weight".
std::string marked_parameter(const std::string& text) {
  const std::string_view mark = "with name ";
  const auto at = text.find(mark);
  if (at == std::string::npos) return "a parameter";
  const auto begin = at + mark.size();
  return "parameter " + text.substr(begin, text.find(' ', begin) - begin);
}

std::string marked_twice(const std::string& text, bool static_graph) {
  return marked_parameter(text) + " got its gradient twice in one backward: " +
         (static_graph ? "static_graph is for the same graph in each iteration; leave it out, or run each backward once"
                       : "run one backward for each forward (earlier ones in a scope of no_sync), and return from "
                         "forward all tensors that the loss is made of; where parts of the graph are run again in "
                         "each backward, set static_graph");
}

}  // namespace

BuiltReducer build_reducer(const ProcessGroup& group, const torch::nn::Module& module,
                           const std::vector<NamedTensor>& parameters, const DistributedDataParallelOptions& options) {
  BuiltReducer built;
  reducing(options.static_graph, [&] {
    built.reducer = construct_reducer(group, module, parameters, options);
    built.logger = std::make_shared<c10d::Logger>(built.reducer);
    built.reducer->set_logger(built.logger);
    const auto device = parameters.front().second.device();
    built.logger->set_construction_data_and_log(
        module.name(), device.has_index() ? std::vector<int>{device.index()} : std::vector<int>{},
        device.has_index() ? device.index() : -1, options.forward_sync_buffers.value_or(options.broadcast_buffers),
        false, options.static_graph);
    if (!options.static_graph) return;
    built.reducer->set_static_graph();
    built.logger->set_static_graph();
  });
  return built;
}

void check_bucket_limits(const DistributedDataParallelOptions& options) { limits_of(options); }

/// By order of definition; backward goes the other way, hence the reversal. Unless unused parameters are looked for it
/// is one bucket: the order of use is not known yet, and a wrong guess could meet other collectives.
std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& tensors,
                                                    const std::vector<bool>& expect_sparse,
                                                    const DistributedDataParallelOptions& options) {
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, first_limits(options), expect_sparse));
  std::reverse(buckets.begin(), buckets.end());
  if (log::is_on(LogPart::kTraining, LogLevel::kDebug)) {
    log::write(LogPart::kTraining, LogLevel::kDebug,
               std::to_string(tensors.size()) + " parameters in " + std::to_string(buckets.size()) + " buckets");
  }
  return buckets;
}

std::string advice_for(const std::string& text, bool static_graph) {
  if (says(text, "Expected to have finished reduction in the prior iteration")) return unfinished(text, static_graph);
  if (says(text, "Expected to mark a variable ready only once") || says(text, "marked as ready twice")) {
    return marked_twice(text, static_graph);
  }
  if (says(text, "Your training graph has changed in this iteration")) {
    return "the graph is not that of the first iteration, and static_graph is for the same in each: a parameter that "
           "was unused then is used now, or is used more often; leave static_graph out";
  }
  return text;
}

}  // namespace taas
