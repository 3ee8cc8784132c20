#include "training/hooks/power_sgd_state.hpp"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/log/log_line.hpp"
#include "taas/error.hpp"

namespace taas {
namespace {

/// Buckets are made anew after the first iteration: what was remembered for one would be another's.
constexpr std::int64_t kFirstWithMemory = 2;

void check_power_sgd(const PowerSGDOptions& options) {
  const auto start = options.start_powerSGD_iter;
  if ((options.use_error_feedback || options.warm_start) && start < kFirstWithMemory) {
    throw InvalidArgument("start_powerSGD_iter must be at least 2 with error feedback or warm start, not " +
                          std::to_string(start));
  }
  if (options.matrix_approximation_rank < 1) {
    throw InvalidArgument("matrix_approximation_rank must be at least 1, not " +
                          std::to_string(options.matrix_approximation_rank));
  }
}

void log_power_sgd(const std::string& text) {
  if (log::is_on(LogPart::kTraining, LogLevel::kInfo)) log::write(LogPart::kTraining, LogLevel::kInfo, text);
}

}  // namespace

PowerSGDState::Impl::Impl(ProcessGroup group_of_model, const PowerSGDOptions& given)
    : group(std::move(group_of_model)), options(given), random(given.random_seed) {
  check_power_sgd(options);
}

GradientFuture PowerSGDState::Impl::plain_average(const GradBucket& bucket) {
  count(bucket);
  return all_reduce_average(group, bucket.buffer());
}

std::optional<Work> PowerSGDState::Impl::start_sum(at::Tensor& tensor) const {
  if (tensor.numel() == 0) return std::nullopt;
  return all_reduce_async(group, tensor);
}

void PowerSGDState::Impl::count(const GradBucket& bucket) {
  if (!bucket.is_last()) return;
  buckets_are_new_ = false;
  if (++iteration == options.start_powerSGD_iter) {
    log_power_sgd("PowerSGD begins after " + std::to_string(iteration) + " iterations");
  }
}

at::Tensor PowerSGDState::Impl::add_error(Memory& memory, const at::Tensor& gradients) const {
  if (!options.use_error_feedback) return {};
  if (memory.error.defined() && memory.error.numel() == gradients.numel()) {
    gradients.add_(memory.error.to(gradients.device()));
  }
  return gradients.detach().clone();
}

void PowerSGDState::Impl::keep_error(Memory& memory, const at::Tensor& copy, const at::Tensor& decompressed) const {
  if (options.use_error_feedback) memory.error = copy - decompressed;
}

void PowerSGDState::Impl::resume(std::map<std::size_t, Memory> kept, NumpyRandomState drawn, std::int64_t from) {
  memories = std::move(kept);
  random = drawn;
  iteration = from;
  next_report_ = from;
  buckets_are_new_ = true;
}

bool PowerSGDState::Impl::reuse_factors(Memory& memory, at::IntArrayRef p, at::IntArrayRef q,
                                        const at::TensorOptions& type) const {
  if (memory.q.defined() && memory.p.sizes() == p && memory.q.sizes() == q) {
    memory.p = memory.p.to(type);
    memory.q = memory.q.to(type);
    return true;
  }
  memory.p = at::empty(p, type);
  memory.q = at::empty(q, type);
  return false;
}

void PowerSGDState::Impl::forget_factors(Memory& memory) const {
  if (options.warm_start) return;
  memory.p.reset();
  memory.q.reset();
}

void PowerSGDState::Impl::log_stats(const GradBucket& bucket) {
  if (!bucket.is_last() || iteration < next_report_) return;
  const auto now = stats();
  log_power_sgd("PowerSGD in iteration " + std::to_string(iteration) + ": " +
                std::to_string(now.numel_before_compression) + " elements became " +
                std::to_string(now.numel_after_compression) + ", rate " + std::to_string(now.compress_rate));
  next_report_ = iteration + std::max<std::int64_t>(1, options.compression_stats_logging_frequency);
}

CompressionStats PowerSGDState::Impl::stats() const {
  const double rate = numel_after > 0 ? static_cast<double>(numel_before) / static_cast<double>(numel_after) : 0;
  return {rate, numel_before, numel_after};
}

PowerSGDState::PowerSGDState(ProcessGroup group, const PowerSGDOptions& options)
    : impl_(std::make_unique<Impl>(std::move(group), options)) {}
PowerSGDState::~PowerSGDState() = default;
CompressionStats PowerSGDState::compression_stats() const { return impl_->stats(); }

}  // namespace taas
