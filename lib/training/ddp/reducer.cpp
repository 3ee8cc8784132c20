#include "training/ddp/reducer.hpp"

#include <torch/csrc/distributed/c10d/debug.h>
#include <torch/version.h>

#include <algorithm>
#include <limits>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>

#include "base/log/log_line.hpp"
#include "training/backend/c10_error.hpp"
#include "training/ddp/comm_hook_adapter.hpp"
#include "training/graph/recording.hpp"
#include "training/group/process_group_state.hpp"

// c10d::Reducer is public but not stable: these releases were compiled against. Its newer arguments all have defaults.
#if TORCH_VERSION_MAJOR != 2 || TORCH_VERSION_MINOR < 11
#error "lib/training/ddp/reducer.cpp knows the Reducer of torch 2.11 to 2.15: check its constructor against this torch"
#endif

namespace taas {
namespace {

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

std::vector<at::Tensor> tensors_of(const std::vector<NamedTensor>& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters) tensors.push_back(tensor);
  return tensors;
}

std::unordered_map<std::size_t, std::string> names_of(const std::vector<NamedTensor>& parameters) {
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) names[i] = parameters[i].first;
  return names;
}

}  // namespace

/// By order of definition; backward goes the other way, hence the reversal. Unless unused
/// parameters are looked for it is one bucket: the order of use is not known yet, and a wrong guess could meet other
/// collectives.
std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& tensors,
                                                    const std::vector<bool>& expect_sparse,
                                                    const ReducerOptions& options) {
  std::vector<std::size_t> limits{std::numeric_limits<std::int64_t>::max()};
  if (options.find_unused_parameters && !options.static_graph) {
    limits = {static_cast<std::size_t>(options.bucket_bytes)};
    if (options.first_bucket_bytes < options.bucket_bytes) {
      limits.insert(limits.begin(), static_cast<std::size_t>(options.first_bucket_bytes));
    }
  }
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, limits, expect_sparse));
  std::reverse(buckets.begin(), buckets.end());
  if (log::is_on(LogPart::kTraining, LogLevel::kDebug)) {
    log::write(LogPart::kTraining, LogLevel::kDebug,
               std::to_string(tensors.size()) + " parameters in " + std::to_string(buckets.size()) + " buckets");
  }
  return buckets;
}

namespace {

std::shared_ptr<c10d::Reducer> make_reducer(const ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                                            const std::vector<bool>& expect_sparse, const ReducerOptions& options) {
  NamedDiagnostics named;
  auto tensors = tensors_of(parameters);
  constexpr bool kSkipUnused = false;
  constexpr bool kPythonReducer = false;
  return std::make_shared<c10d::Reducer>(
      tensors, first_buckets(tensors, expect_sparse, options), group.state().group, expect_sparse, options.bucket_bytes,
      options.find_unused_parameters, options.gradient_as_bucket_view, names_of(parameters), options.first_bucket_bytes,
      kSkipUnused, kPythonReducer, std::vector<std::int64_t>{});
}

/// The reducer measures itself in its first ten iterations and then once in so many, and the logger waits for the GPU
/// to read that: a step would wait, and one that is being recorded would fail.
constexpr int kNeverAgain = std::numeric_limits<int>::max();

std::vector<int> device_index(c10::Device device) {
  return device.has_index() ? std::vector<int>{device.index()} : std::vector<int>{};
}

/// The part of libtorch's text that matters: which parameters got no gradient.
[[noreturn]] void rethrow(const c10::Error& error) {
  const auto text = one_line(error);
  const std::string_view mark = "did not receive grad for ";
  const auto at = text.find(mark);
  if (text.find("Expected to have finished reduction in the prior iteration") == std::string::npos ||
      at == std::string::npos) {
    throw Exception(text);
  }
  throw Exception("parameters that got no gradient in the last backward on " + text.substr(at + mark.size()) +
                  ": use them in the loss, or set find_unused_parameters");
}

template <class Call>
void reducing(Call&& call) {
  try {
    call();
  } catch (const c10::DistError& error) {
    throw CommunicationError(one_line(error));
  } catch (const c10::Error& error) {
    rethrow(error);
  }
}

}  // namespace

class Reducer::Impl {
 public:
  Impl(const ProcessGroup& group, const std::vector<NamedTensor>& parameters, const std::vector<bool>& expect_sparse,
       const ReducerOptions& options)
      : reducer(make_reducer(group, parameters, expect_sparse, options)),
        logger(std::make_shared<c10d::Logger>(reducer)) {
    reducer->set_logger(logger);
    reducer->set_ddp_runtime_logging_sample_rate(kNeverAgain);
    const auto indices = device_index(parameters.front().second.device());
    logger->set_construction_data_and_log("taas::DistributedDataParallel", indices, indices.empty() ? -1 : indices[0],
                                          options.broadcast_buffers, false, options.static_graph);
    if (!options.static_graph) return;
    reducer->set_static_graph();
    logger->set_static_graph();
  }

  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
};

Reducer::Reducer(const ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                 const std::vector<bool>& expect_sparse, const ReducerOptions& options) {
  reducing([&] { impl_ = std::make_unique<Impl>(group, parameters, expect_sparse, options); });
}
Reducer::~Reducer() = default;

void Reducer::start_forward() {
  if (!recording()) impl_->logger->set_runtime_stats_and_log();
  impl_->reducer->prepare_for_forward();
}

void Reducer::rebuild_buckets() {
  reducing([&] { impl_->reducer->rebuild_buckets(); });
}

void Reducer::prepare_for_backward(const std::vector<at::Tensor>& outputs) {
  reducing([&] { impl_->reducer->prepare_for_backward(outputs); });
}

void Reducer::delay_all_reduce() { impl_->reducer->delay_all_reduce(); }

void Reducer::register_comm_hook(const std::shared_ptr<CommHook>& hook) {
  impl_->logger->set_comm_hook(hook->name());
  reducing([&] { impl_->reducer->register_comm_hook(std::make_unique<CommHookAdapter>(hook)); });
}

void Reducer::register_comm_hook(BuiltinCommHook hook) {
  const bool half = hook == BuiltinCommHook::kFp16Compress;
  impl_->logger->set_comm_hook(half ? "BuiltinCommHookType.FP16_COMPRESS" : "BuiltinCommHookType.ALLREDUCE");
  reducing([&] {
    impl_->reducer->register_builtin_comm_hook(half ? c10d::BuiltinCommHookType::FP16_COMPRESS
                                                    : c10d::BuiltinCommHookType::ALLREDUCE);
  });
}

void Reducer::set_active_ranks(c10::intrusive_ptr<c10d::Work> sum, bool divide_by_world_size) {
  impl_->reducer->set_forward_pass_work_handle(std::move(sum), divide_by_world_size);
}

void Reducer::shadow_backward(const ProcessGroup& group, bool find_unused_parameters) {
  auto& reducer = *impl_->reducer;
  communicating("reduction of gradients for other ranks", [&] {
    auto buckets = reducer.get_grad_buckets(/*return_zero_tensors=*/true);
    std::vector<GradientFuture> futures;
    for (auto& bucket : buckets) futures.push_back(reducer.run_comm_hook(bucket));
    for (const auto& future : futures) future->waitAndThrow();
    if (!find_unused_parameters) return;
    std::vector<at::Tensor> used{reducer.get_local_used_map_on_device()};
    group.native()->allreduce(used)->wait();
  });
  reducer.push_rebuilt_params_for_all_indices();
}

}  // namespace taas
