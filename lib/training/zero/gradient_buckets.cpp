#include "training/zero/gradient_buckets.hpp"

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "taas/error.hpp"
#include "training/ddp/reducer.hpp"

namespace taas {
namespace {

constexpr double kBytesPerMiB = 1024.0 * 1024.0;
constexpr double kUsualMiB = 25;
constexpr double kFirstMiB = 1;
/// Buckets whose sums are under way: more of them would keep more memory.
constexpr std::size_t kInFlight = 3;

std::int64_t bytes_of(double mib) { return static_cast<std::int64_t>(mib * kBytesPerMiB); }

ReducerOptions limits_of(const GradientBucketOptions& options) {
  ReducerOptions limits;
  limits.bucket_bytes = bytes_of(options.bucket_cap_mb.value_or(kUsualMiB));
  limits.first_bucket_bytes = bytes_of(options.bucket_cap_mb.value_or(kFirstMiB));
  limits.find_unused_parameters = options.find_unused_parameters;
  return limits;
}

}  // namespace

GradientBuckets::GradientBuckets(const ProcessGroup& group, std::vector<at::Tensor> parameters,
                                 std::vector<BucketLayout> slices, const GradientBucketOptions& options,
                                 Deliver deliver)
    : group_(group), parameters_(std::move(parameters)), options_(options), deliver_(std::move(deliver)) {
  if (options.reduce_scatter) {
    use_layouts(std::move(slices));
  } else {
    use_buckets(first_buckets(parameters_, std::vector<bool>(parameters_.size(), false), limits_of(options)));
  }
  rebuilt_ = options.reduce_scatter || options.find_unused_parameters;
  reset();
  for (std::size_t i = 0; i < parameters_.size(); ++i) add_hook(i);
}

GradientBuckets::~GradientBuckets() {
  for (auto& [node, key] : hooks_) node->del_post_hook(key);
}

void GradientBuckets::add_hook(std::size_t parameter) {
  auto node = torch::autograd::impl::grad_accumulator(parameters_[parameter]);
  auto hook = std::make_unique<torch::autograd::utils::LambdaPostHook>(
      [this, parameter](const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>&) {
        if (sync_) on_gradient(parameter);
        return outputs;
      });
  const auto key = node->add_post_hook(std::move(hook));
  hooks_.emplace_back(std::move(node), key);
}

void GradientBuckets::use_buckets(const std::vector<std::vector<std::size_t>>& assignment) {
  std::vector<BucketLayout> layouts;
  for (const auto& indices : assignment) {
    auto& layout = layouts.emplace_back();
    for (auto index : indices) {
      layout.places.push_back({index, layout.numel, parameters_[index].numel()});
      layout.numel += parameters_[index].numel();
    }
  }
  use_layouts(std::move(layouts));
}

void GradientBuckets::use_layouts(std::vector<BucketLayout> layouts) {
  buckets_.clear();
  places_.resize(parameters_.size());
  for (auto& layout : layouts) {
    for (std::size_t i = 0; i < layout.places.size(); ++i) places_[layout.places[i].parameter] = {buckets_.size(), i};
    buckets_.push_back({.layout = std::move(layout)});
  }
}

void GradientBuckets::reset() {
  for (auto& bucket : buckets_) {
    bucket.missing = bucket.layout.places.size();
    bucket.memory = bucket.average = at::Tensor();
    bucket.work.reset();
  }
  came_.assign(parameters_.size(), false);
  started_ = delivered_ = 0;
  running_ = shadow_ = false;
  used_.clear();
}

void GradientBuckets::on_gradient(std::size_t parameter) {
  const std::lock_guard lock(mutex_);
  at::NoGradGuard no_grad;
  try {
    if (!running_) begin();
    take(parameter);
    start_ready();
  } catch (...) {
    reset();  // finish() will not be called
    throw;
  }
}

void GradientBuckets::begin() {
  divisor_ = at_start_ ? at_start_() : group_.world_size();
  torch::autograd::Engine::get_default_engine().queue_callback([this] { finish(); });
  running_ = true;
}

at::Tensor& GradientBuckets::memory_of(Bucket& bucket) {
  if (!bucket.memory.defined()) {
    const auto options = parameters_[bucket.layout.places.front().parameter].detach().options();
    bucket.memory =
        options_.reduce_scatter ? at::zeros({bucket.layout.numel}, options) : at::empty({bucket.layout.numel}, options);
  }
  return bucket.memory;
}

/// Divided first, by the operation of DistributedDataParallel.
void GradientBuckets::take(std::size_t parameter) {
  auto& gradient = parameters_[parameter].mutable_grad();
  if (gradient.is_sparse()) {
    throw InvalidArgument("parameter " + std::to_string(parameter) +
                          " has a sparse gradient: taas::ZeroOptimizer takes dense ones only");
  }
  if (came_[parameter]) {
    throw InvalidArgument("parameter " + std::to_string(parameter) +
                          " got two gradients in one backward (reentrant checkpointing?): use no_sync() and one more "
                          "backward, or stage 1");
  }
  auto& bucket = buckets_[places_[parameter].first];
  const auto& place = bucket.layout.places[places_[parameter].second];
  auto view = view_like(memory_of(bucket), place.offset, parameters_[parameter]);
  at::mul_out(view, gradient, at::native::wrapped_scalar_tensor(1.0 / divisor_));
  gradient.reset();
  came_[parameter] = true;
  if (!rebuilt_) order_.push_back(parameter);
  --bucket.missing;
}

/// In the order of the buckets, which is the same on all ranks.
void GradientBuckets::start_ready() {
  while (started_ < buckets_.size() && buckets_[started_].missing == 0) start(buckets_[started_]);
}

void GradientBuckets::start(Bucket& bucket) {
  if (!options_.find_unused_parameters && started_ - delivered_ >= kInFlight) deliver_next();
  if (options_.reduce_scatter) {
    bucket.average = at::empty({bucket.layout.numel / group_.world_size()}, bucket.memory.options());
    bucket.work = reduce_scatter_async(group_, bucket.average, bucket.memory.view({group_.world_size(), -1}));
  } else {
    bucket.average = bucket.memory;
    bucket.work = all_reduce_async(group_, bucket.average);
  }
  ++started_;
}

void GradientBuckets::deliver_next() {
  auto& bucket = buckets_[delivered_++];
  bucket.work->wait();
  const auto is_unused = [&](std::size_t parameter) { return !used_.empty() && !used_[parameter]; };
  if (options_.reduce_scatter) {
    const auto first = bucket.average.numel() * group_.rank();
    for (const auto& part : parts_of(bucket.layout, group_.rank(), group_.world_size())) {
      if (is_unused(part.parameter)) continue;
      deliver_(part.parameter, part.begin, bucket.average.narrow(0, part.offset - first, part.end - part.begin));
    }
  } else {
    for (const auto& place : bucket.layout.places) {
      if (is_unused(place.parameter)) continue;
      deliver_(place.parameter, 0, bucket.average.narrow(0, place.offset, place.numel));
    }
  }
  bucket.memory = bucket.average = at::Tensor();
  bucket.work.reset();
}

/// Of a parameter that is unused in this backward, but was used in one before under no_sync().
void GradientBuckets::take_accumulated() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!came_[i] && parameters_[i].grad().defined()) take(i);
  }
  start_ready();
}

void GradientBuckets::check_all_came() const {
  std::string missing;
  for (std::size_t i = 0; i < came_.size(); ++i) {
    if (!came_[i]) missing += (missing.empty() ? "" : ", ") + std::to_string(i);
  }
  if (missing.empty()) return;
  throw Exception("parameters that got no gradient in this backward on rank " + std::to_string(group_.rank()) + ": " +
                  missing + " (by their place in the optimizer): use them in the loss, or set find_unused_parameters");
}

std::vector<bool> GradientBuckets::used_anywhere() {
  auto used = at::zeros({static_cast<std::int64_t>(came_.size())}, at::kInt);
  for (std::size_t i = 0; i < came_.size(); ++i) used.data_ptr<int>()[i] = came_[i] ? 1 : 0;
  used = used.to(group_.device());
  all_reduce(group_, used, ReduceOp::kMax);
  used = used.cpu();
  const auto* first = used.data_ptr<int>();
  return std::vector<bool>(first, first + used.numel());
}

void GradientBuckets::shadow_backward() {
  at::NoGradGuard no_grad;
  running_ = shadow_ = true;
  finish();
}

/// Those of the first rank, in the order in which its gradients came: as DistributedDataParallel makes them anew.
void GradientBuckets::rebuild() {
  for (std::size_t i = 0; order_.size() < parameters_.size(); ++i) {
    if (std::find(order_.begin(), order_.end(), i) == order_.end()) order_.push_back(i);
  }
  auto agreed = at::zeros({2, static_cast<std::int64_t>(parameters_.size())}, at::kLong);
  auto* parameter = agreed.data_ptr<std::int64_t>();
  auto* bucket = parameter + parameters_.size();
  const auto mine = assignment_in_order();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    for (auto index : mine[i]) {
      *parameter++ = static_cast<std::int64_t>(index);
      *bucket++ = static_cast<std::int64_t>(i);
    }
  }
  agreed = agreed.to(group_.device());
  broadcast(group_, agreed);
  agreed = agreed.cpu();
  const auto* indices = agreed.data_ptr<std::int64_t>();
  const auto* numbers = indices + parameters_.size();
  std::vector<std::vector<std::size_t>> assignment;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    assignment.resize(static_cast<std::size_t>(numbers[i]) + 1);
    assignment.back().push_back(static_cast<std::size_t>(indices[i]));
  }
  use_buckets(assignment);
  rebuilt_ = true;
}

std::vector<std::vector<std::size_t>> GradientBuckets::assignment_in_order() const {
  std::vector<at::Tensor> tensors;
  for (auto index : order_) tensors.push_back(parameters_[index]);
  const auto limits = limits_of(options_);
  return std::get<0>(c10d::compute_bucket_assignment_by_size(
      tensors, {static_cast<std::size_t>(limits.first_bucket_bytes), static_cast<std::size_t>(limits.bucket_bytes)},
      std::vector<bool>(tensors.size(), false), {order_.begin(), order_.end()}));
}

void GradientBuckets::finish() {
  at::NoGradGuard no_grad;
  try {
    if (options_.find_unused_parameters && !shadow_) take_accumulated();
    if (!options_.find_unused_parameters && !shadow_) check_all_came();
    while (started_ < buckets_.size()) {
      auto& bucket = buckets_[started_];
      for (const auto& place : bucket.layout.places) {
        if (!came_[place.parameter]) memory_of(bucket).narrow(0, place.offset, place.numel).zero_();
      }
      start(bucket);
    }
    if (options_.find_unused_parameters) used_ = used_anywhere();
    while (delivered_ < buckets_.size()) deliver_next();
    if (!rebuilt_) rebuild();
  } catch (...) {
    reset();
    throw;
  }
  reset();
}

}  // namespace taas
