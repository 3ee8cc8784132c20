#include "training/ddp/reducer.hpp"

#include <torch/csrc/distributed/c10d/debug.h>
#include <torch/version.h>

#include <algorithm>
#include <limits>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/log/log_line.hpp"
#include "taas/error.hpp"
#include "training/backend/c10_error.hpp"
#include "training/ddp/module_tensors.hpp"
#include "training/ddp/precision/lowered_parameter.hpp"
#include "training/ddp/reducer_errors.hpp"
#include "training/ddp/shared_memory.hpp"
#include "training/graph/recording.hpp"
#include "training/group/process_group_state.hpp"
#include "training/hooks/comm_hook_adapter.hpp"
#include "training/join/kept_gradients.hpp"

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

std::unordered_map<std::size_t, std::string> names_of(const std::vector<NamedTensor>& parameters) {
  std::unordered_map<std::size_t, std::string> names;
  for (std::size_t i = 0; i < parameters.size(); ++i) names[i] = parameters[i].first;
  return names;
}

std::vector<std::size_t> first_limits(const ReducerOptions& options) {
  if (!options.bucket_bytes_list.empty()) return {options.bucket_bytes_list.begin(), options.bucket_bytes_list.end()};
  if (!options.find_unused_parameters || options.static_graph) return {std::numeric_limits<std::int64_t>::max()};
  std::vector<std::size_t> limits{static_cast<std::size_t>(options.bucket_bytes)};
  if (options.first_bucket_bytes < options.bucket_bytes) {
    limits.insert(limits.begin(), static_cast<std::size_t>(options.first_bucket_bytes));
  }
  return limits;
}

}  // namespace

/// By order of definition; backward goes the other way, hence the reversal. Unless unused
/// parameters are looked for it is one bucket: the order of use is not known yet, and a wrong guess could meet other
/// collectives.
std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& tensors,
                                                    const std::vector<bool>& expect_sparse,
                                                    const ReducerOptions& options) {
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, first_limits(options), expect_sparse));
  std::reverse(buckets.begin(), buckets.end());
  if (log::is_on(LogPart::kTraining, LogLevel::kDebug)) {
    log::write(LogPart::kTraining, LogLevel::kDebug,
               std::to_string(tensors.size()) + " parameters in " + std::to_string(buckets.size()) + " buckets");
  }
  return buckets;
}

namespace {

/// Batched copies and lazy buckets are arguments of newer releases.
template <class Native, class... Arguments>
std::shared_ptr<Native> construct(const ReducerOptions& options, Arguments&&... arguments) {
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

/// set_mixed_precision_param_dtype is for later buckets: it gives those that are there new memory, to which their views
/// do not lead, so that the first step would reduce whatever lies in it. Buckets made of low parameters are right.
std::vector<LoweredParameter> lowered_parameters(const std::vector<at::Tensor>& parameters,
                                                 std::optional<at::ScalarType> type) {
  std::vector<LoweredParameter> lowered;
  if (!type) return lowered;
  lowered.reserve(parameters.size());
  for (const auto& parameter : parameters) lowered.emplace_back(parameter, *type).lower();
  return lowered;
}

c10::intrusive_ptr<c10d::ProcessGroup> native_group(const ProcessGroup& group, const ReducerOptions& options) {
  return options.share_memory ? with_shared_memory(group) : group.state().group;
}

std::shared_ptr<c10d::Reducer> make_reducer(const ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                                            const std::vector<bool>& expect_sparse, const ReducerOptions& options) {
  NamedDiagnostics named;
  auto tensors = tensors_of(parameters);
  constexpr bool kPythonReducer = false;
  const auto buckets = first_buckets(tensors, expect_sparse, options);  // by the size of the parameters as they are
  const auto lowered = lowered_parameters(tensors, options.param_dtype);
  auto reducer = construct<c10d::Reducer>(
      options, tensors, buckets, native_group(group, options), expect_sparse, options.bucket_bytes,
      options.find_unused_parameters, options.gradient_as_bucket_view, names_of(parameters), options.first_bucket_bytes,
      options.skip_all_reduce_unused_params, kPythonReducer, options.bucket_bytes_list);
  if (options.param_dtype) reducer->set_mixed_precision_param_dtype(*options.param_dtype);
  return reducer;
}

/// The reducer measures itself in its first ten iterations and then once in so many, and the logger waits for the GPU
/// to read that: a step would wait, and one that is being recorded would fail.
constexpr int kNeverAgain = std::numeric_limits<int>::max();

std::vector<int> device_index(c10::Device device) {
  return device.has_index() ? std::vector<int>{device.index()} : std::vector<int>{};
}

/// Of libtorch 2.15; older releases have no manual finalization.
[[noreturn]] void refuse_manual_finalization() {
  throw ConfigError("manual finalization of backward needs libtorch 2.15, this is " TORCH_VERSION);
}

template <class Native>
void set_manual_finalization(Native& reducer, bool required) {
  if constexpr (requires { reducer.set_manual_finalization_required(required); }) {
    reducer.set_manual_finalization_required(required);
  } else if (required) {
    refuse_manual_finalization();
  }
}

template <class Native>
bool finalize_is_late(const Native& reducer) {
  if constexpr (requires { reducer.should_finalize_after_backward(); }) {
    return reducer.should_finalize_after_backward();
  } else {
    return false;
  }
}

template <class Native>
void finalize_manually(Native& reducer) {
  if constexpr (requires { reducer.finalize_backward_manual(); }) {
    reducer.finalize_backward_manual();
  } else {
    refuse_manual_finalization();
  }
}

}  // namespace

class Reducer::Impl {
 public:
  Impl(const ProcessGroup& group, const std::vector<NamedTensor>& parameters, const std::vector<bool>& expect_sparse,
       const ReducerOptions& options)
      : reducer(make_reducer(group, parameters, expect_sparse, options)),
        logger(std::make_shared<c10d::Logger>(reducer)),
        static_graph(options.static_graph),
        tensors(tensors_of(parameters)) {
    reducer->set_logger(logger);
    reducer->set_ddp_runtime_logging_sample_rate(kNeverAgain);
    const auto indices = device_index(parameters.front().second.device());
    logger->set_construction_data_and_log(options.module_name, indices, indices.empty() ? -1 : indices[0],
                                          options.broadcast_buffers, false, options.static_graph);
    if (static_graph) set_static_graph();
  }

  void set_static_graph() {
    static_graph = true;
    reducer->set_static_graph();
    logger->set_static_graph();
  }

  void begin_backward() {
    if (hook) hook->begin_backward();
  }

  template <class Call>
  void reducing(Call&& call) {
    taas::reducing(static_graph, std::forward<Call>(call));
  }

  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;
  CommHookAdapter* hook = nullptr;  ///< the reducer's
  bool static_graph;
  std::vector<at::Tensor> tensors;
};

Reducer::Reducer(const ProcessGroup& group, const std::vector<NamedTensor>& parameters,
                 const std::vector<bool>& expect_sparse, const ReducerOptions& options) {
  taas::reducing(options.static_graph,
                 [&] { impl_ = std::make_unique<Impl>(group, parameters, expect_sparse, options); });
}
Reducer::~Reducer() = default;

void Reducer::start_forward() {
  if (!recording()) impl_->logger->set_runtime_stats_and_log();
  impl_->reducer->prepare_for_forward();
}

void Reducer::rebuild_buckets() {
  impl_->reducing([&] { impl_->reducer->rebuild_buckets(); });
}

void Reducer::prepare_for_backward(const std::vector<at::Tensor>& outputs) {
  impl_->begin_backward();
  impl_->reducing([&] { impl_->reducer->prepare_for_backward(outputs); });
}

void Reducer::delay_all_reduce() {
  impl_->reducing([&] { impl_->reducer->delay_all_reduce(); });
}

void Reducer::set_static_graph() {
  impl_->reducing([&] { impl_->set_static_graph(); });
}

void Reducer::wait_in_backward(const std::vector<GradientFuture>& futures) {
  c10::List<GradientFuture> list(c10::FutureType::create(c10::TensorType::get()));
  for (const auto& future : futures) list.push_back(future);
  impl_->reducer->install_futures(list);
}

void Reducer::register_comm_hook(const std::shared_ptr<CommHook>& hook) {
  impl_->logger->set_comm_hook(hook->name());
  auto adapter = std::make_unique<CommHookAdapter>(hook);
  auto* registered = adapter.get();
  impl_->reducing([&] { impl_->reducer->register_comm_hook(std::move(adapter)); });
  impl_->hook = registered;
}

void Reducer::register_comm_hook(BuiltinCommHook hook) {
  const bool half = hook == BuiltinCommHook::kFp16Compress;
  impl_->logger->set_comm_hook(half ? "BuiltinCommHookType.FP16_COMPRESS" : "BuiltinCommHookType.ALLREDUCE");
  impl_->reducing([&] {
    impl_->reducer->register_builtin_comm_hook(half ? c10d::BuiltinCommHookType::FP16_COMPRESS
                                                    : c10d::BuiltinCommHookType::ALLREDUCE);
  });
}

void Reducer::note_join() { impl_->logger->set_uneven_input_join(); }

void Reducer::set_active_ranks(c10::intrusive_ptr<c10d::Work> sum, bool divide_by_world_size) {
  impl_->reducer->set_forward_pass_work_handle(std::move(sum), divide_by_world_size);
}

void Reducer::shadow_backward(const ProcessGroup& group, bool find_unused_parameters, bool keep) {
  auto& reducer = *impl_->reducer;
  impl_->begin_backward();
  communicating("reduction of gradients for other ranks", [&] {
    auto buckets = reducer.get_grad_buckets(/*return_zero_tensors=*/true);
    std::vector<GradientFuture> futures;
    for (auto& bucket : buckets) futures.push_back(reducer.run_comm_hook(bucket));
    for (const auto& future : futures) future->waitAndThrow();
    for (std::size_t i = 0; keep && i < buckets.size(); ++i) {
      keep_gradients(c10d::detail::parseCppCommHookResult(futures[i]->value()), buckets[i].getParameters());
    }
    if (!find_unused_parameters) return;
    std::vector<at::Tensor> used{reducer.get_local_used_map_on_device()};
    group.native()->allreduce(used)->wait();
    if (!keep) return;
    const auto on_cpu = used.front().cpu();
    for (std::size_t i = 0; i < impl_->tensors.size(); ++i) {
      if (on_cpu.data_ptr<int>()[i] == 0) impl_->tensors[i].mutable_grad().reset();
    }
  });
  reducer.push_rebuilt_params_for_all_indices();
}

void Reducer::use_group(const ProcessGroup& group) {
  impl_->reducing([&] {
    impl_->reducer->reset_state();
    impl_->reducer->update_process_group(group.state().group);
  });
}

void Reducer::remove_autograd_hooks() { impl_->reducer->remove_autograd_hooks(); }

void Reducer::check_finalized() {
  impl_->reducing([&] { impl_->reducer->check_finalized(); });
}

void Reducer::require_manual_finalization(bool required) {
  impl_->reducing([&] { set_manual_finalization(*impl_->reducer, required); });
}

bool Reducer::should_finalize_after_backward() const { return finalize_is_late(*impl_->reducer); }

void Reducer::finalize() {
  impl_->reducing([&] { finalize_manually(*impl_->reducer); });
}

void Reducer::measure_every(int rate) { impl_->reducer->set_ddp_runtime_logging_sample_rate(rate); }

std::map<std::string, std::string> Reducer::logged_texts() const {
  return impl_->logger->get_ddp_logging_data().strs_map;
}
std::map<std::string, std::int64_t> Reducer::logged_numbers() const {
  return impl_->logger->get_ddp_logging_data().ints_map;
}

c10d::Reducer& Reducer::native() const { return *impl_->reducer; }

}  // namespace taas
