// batched_powerSGD_hook: all of a bucket as one square matrix. In torch 2.15 this hook fails an assertion of its own
// (_orthogonalize wants a batch); the operations are those of its text, on a batch of one.
#include <ATen/ATen.h>

#include <cmath>

#include "training/hooks/orthogonalize.hpp"
#include "training/hooks/power_sgd_state.hpp"
#include "training/hooks/random_factors.hpp"
#include "training/hooks/staged_hook.hpp"

namespace taas {
namespace {

class SquareBucket {
 public:
  SquareBucket(std::shared_ptr<PowerSGDState> owner, const GradBucket& bucket)
      : owner_(std::move(owner)),
        state_(owner_->impl()),
        bucket_(bucket),
        memory_(state_.memories[bucket.index()]),
        gradients_(bucket.buffer()),
        length_(gradients_.numel()),
        side_(static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(length_))))) {
    state_.numel_before += length_;
    state_.numel_after += side_ * state_.options.matrix_approximation_rank * 2;
    pad();
    state_.log_stats(bucket);
    with_error_ = state_.add_error(memory_, gradients_);
    matrix_ = gradients_.view({side_, side_});
  }

  /// P = M Q
  at::Tensor reduce_p() {
    prepare_factors();
    orthogonalize(memory_.q.unsqueeze(0), 0);
    at::matmul_out(memory_.p, matrix_, memory_.q);
    work_ = state_.start_sum(memory_.p);
    return {};
  }

  /// Q = M^T P
  at::Tensor reduce_q() {
    work_->wait();
    orthogonalize(memory_.p.unsqueeze(0), 0);
    at::matmul_out(memory_.q, matrix_.t(), memory_.p);
    work_ = state_.start_sum(memory_.q);
    return {};
  }

  at::Tensor decompress() {
    work_->wait();
    memory_.q.div_(state_.group.world_size());
    at::matmul_out(matrix_, memory_.p, memory_.q.t());
    state_.keep_error(memory_, with_error_, gradients_);
    state_.forget_factors(memory_);
    gradients_.resize_({length_});
    state_.count(bucket_);
    return gradients_;
  }

 private:
  void pad() {
    gradients_.resize_({side_ * side_});
    gradients_.slice(0, length_).fill_(0);
  }

  void prepare_factors() {
    const auto rank = state_.options.matrix_approximation_rank;
    if (state_.reuse_factors(memory_, {side_, rank}, {side_, rank}, gradients_.options())) return;
    RandomFactors(state_.random).fill(memory_.q);
  }

  std::shared_ptr<PowerSGDState> owner_;
  PowerSGDState::Impl& state_;
  GradBucket bucket_;
  PowerSGDState::Impl::Memory& memory_;
  at::Tensor gradients_;  ///< padded to a square until it is decompressed
  std::int64_t length_;
  std::int64_t side_;
  at::Tensor with_error_;
  at::Tensor matrix_;
  std::optional<Work> work_;
};

class BatchedPowerSGDHook : public StagedHook {
 public:
  explicit BatchedPowerSGDHook(std::shared_ptr<PowerSGDState> state) : state_(std::move(state)) {}
  std::string name() const override { return "batched_powerSGD_hook"; }

  GradientFuture run(GradBucket& bucket) override {
    auto& state = state_->impl();
    return state.has_begun() ? StagedHook::run(bucket) : state.plain_average(bucket);
  }

 private:
  std::vector<Stage> stages(const GradBucket& bucket) override {
    auto work = std::make_shared<SquareBucket>(state_, bucket);
    return {[work] { return work->reduce_p(); }, [work] { return work->reduce_q(); },
            [work] { return work->decompress(); }};
  }

  std::shared_ptr<PowerSGDState> state_;
};

}  // namespace

std::shared_ptr<CommHook> batched_powerSGD_hook(std::shared_ptr<PowerSGDState> state) {
  return std::make_shared<BatchedPowerSGDHook>(std::move(state));
}

}  // namespace taas
