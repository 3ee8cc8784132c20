// powerSGD_hook: algorithm 1 of https://arxiv.org/abs/1905.13727, with the operations of torch's hook in their order.
#include <ATen/ATen.h>

#include <algorithm>
#include <optional>

#include "training/hooks/matrices.hpp"
#include "training/hooks/orthogonalize.hpp"
#include "training/hooks/power_sgd_state.hpp"
#include "training/hooks/random_factors.hpp"
#include "training/hooks/staged_hook.hpp"

namespace taas {
namespace {

using State = PowerSGDState::Impl;

/// The gradients of a bucket: those that become smaller, as matrices, and the others.
struct Divided {
  std::vector<at::Tensor> matrices;
  std::vector<at::Tensor> others;
  std::int64_t p_numel = 0;
  std::int64_t q_numel = 0;
};

void divide(Divided& divided, State& state, const at::Tensor& gradient) {
  const auto matrix = gradient.view({gradient.dim() ? gradient.size(0) : 1, -1});
  const auto rows = matrix.size(0), columns = matrix.size(1);
  const auto rank = std::min({rows, columns, state.options.matrix_approximation_rank});
  const auto compressed = (rows + columns) * rank;
  state.numel_before += rows * columns;
  if (static_cast<double>(compressed) * state.options.min_compression_rate < static_cast<double>(rows * columns)) {
    divided.matrices.push_back(matrix);
    divided.p_numel += rows * rank;
    divided.q_numel += columns * rank;
    state.numel_after += compressed;
  } else {
    divided.others.push_back(gradient);
    state.numel_after += rows * columns;
  }
}

Divided divide_bucket(State& state, const GradBucket& bucket) {
  Divided divided;
  for (const auto& gradient : bucket.gradients()) divide(divided, state, gradient);
  return divided;
}

at::Tensor flat(const std::vector<at::Tensor>& tensors, const at::TensorOptions& options) {
  std::vector<at::Tensor> parts;
  for (const auto& tensor : tensors) parts.push_back(tensor.view(-1));
  return parts.empty() ? at::empty({0}, options) : at::cat(parts);
}

class CompressedBucket {
 public:
  CompressedBucket(std::shared_ptr<PowerSGDState> owner, const GradBucket& bucket)
      : owner_(std::move(owner)),
        state_(owner_->impl()),
        bucket_(bucket),
        memory_(state_.memories[bucket.index()]),
        gradients_(bucket.buffer()),
        with_error_(state_.add_error(memory_, gradients_)),
        divided_(divide_bucket(state_, bucket)),
        matrices_(divided_.matrices, state_.options.batch_tensors_with_same_shape) {
    state_.log_stats(bucket);
  }

  /// P = M Q, and the sum of what is not compressed.
  at::Tensor reduce_others() {
    others_ = flat(divided_.others, gradients_.options());
    prepare_factors();
    const auto& tensors = matrices_.tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) at::bmm_out(p_[i], tensors[i], q_[i]);
    work_ = state_.start_sum(others_);
    return {};
  }

  at::Tensor reduce_p() {
    if (work_) work_->wait();
    others_.div_(state_.group.world_size());
    std::int64_t at = 0;
    for (const auto& tensor : divided_.others) {
      tensor.copy_(others_.slice(0, at, at + tensor.numel()).view_as(tensor));
      at += tensor.numel();
    }
    work_ = state_.start_sum(memory_.p);
    return {};
  }

  /// Q = M^T P: P needs no division, as it is made orthonormal.
  at::Tensor reduce_q() {
    if (work_) work_->wait();
    for (const auto& p : p_) orthogonalize(p, state_.options.orthogonalization_epsilon);
    const auto& tensors = matrices_.tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) at::bmm_out(q_[i], tensors[i].transpose(1, 2), p_[i]);
    work_ = state_.start_sum(memory_.q);
    return {};
  }

  at::Tensor decompress() {
    if (work_) work_->wait();
    memory_.q.div_(state_.group.world_size());
    for (std::size_t i = 0; i < p_.size(); ++i) {
      auto matrix = matrices_.tensors()[i];
      at::bmm_out(matrix, p_[i], q_[i].transpose(1, 2));
    }
    matrices_.write_back();
    state_.keep_error(memory_, with_error_, gradients_);
    state_.forget_factors(memory_);
    state_.count(bucket_);
    return gradients_;
  }

 private:
  void prepare_factors() {
    const bool reuse = state_.reuse_factors(memory_, {divided_.p_numel}, {divided_.q_numel}, gradients_.options());
    const auto rank = state_.options.matrix_approximation_rank;
    p_ = factors_in(memory_.p, matrices_.tensors(), 1, rank);
    q_ = factors_in(memory_.q, matrices_.tensors(), 2, rank);
    std::optional<RandomFactors> random;
    if (!reuse) random.emplace(state_.random);
    for (const auto& q : q_) {
      if (random) random->fill(q);
      orthogonalize(q, state_.options.orthogonalization_epsilon);
    }
  }

  std::shared_ptr<PowerSGDState> owner_;
  State& state_;
  GradBucket bucket_;
  State::Memory& memory_;
  at::Tensor gradients_;
  at::Tensor with_error_;
  Divided divided_;
  Matrices matrices_;
  at::Tensor others_;
  std::vector<at::Tensor> p_, q_;
  std::optional<Work> work_;
};

class PowerSGDHook : public StagedHook {
 public:
  explicit PowerSGDHook(std::shared_ptr<PowerSGDState> state) : state_(std::move(state)) {}
  std::string name() const override { return "powerSGD_hook"; }

  GradientFuture run(GradBucket& bucket) override {
    auto& state = state_->impl();
    return state.has_begun() ? StagedHook::run(bucket) : state.plain_average(bucket);
  }

 private:
  std::vector<Stage> stages(const GradBucket& bucket) override {
    auto work = std::make_shared<CompressedBucket>(state_, bucket);
    return {[work] { return work->reduce_others(); }, [work] { return work->reduce_p(); },
            [work] { return work->reduce_q(); }, [work] { return work->decompress(); }};
  }

  std::shared_ptr<PowerSGDState> state_;
};

}  // namespace

std::shared_ptr<CommHook> powerSGD_hook(std::shared_ptr<PowerSGDState> state) {
  return std::make_shared<PowerSGDHook>(std::move(state));
}

}  // namespace taas
