#include <ATen/Functions.h>
#include <torch/nn/modules/batchnorm.h>

#include <string>

#include "../group/scenario_tensors.hpp"
#include "../rank_scenarios.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/process_group.hpp"
#include "taas/sync_batch_norm.hpp"

namespace taas::test {
namespace {

namespace nn = torch::nn;

constexpr std::int64_t kChannels = 3;

/// Which rows of the whole batch are this rank's: 2 on rank 0, 3 on rank 1 and so on; `none` is a rank without any.
struct RowsOfRank {
  std::int64_t begin = 0, count = 0, all = 0;

  RowsOfRank(const ProcessGroup& group, int none) {
    for (int rank = 0; rank < group.world_size(); ++rank) {
      if (rank == group.rank()) begin = all;
      all += rank == none ? 0 : rank + 2;
      if (rank == group.rank()) count = all - begin;
    }
  }
  [[nodiscard]] at::Tensor of(const at::Tensor& whole) const { return whole.narrow(0, begin, count); }
};

struct NormTolerance {
  double relative, absolute;
};

void expect_close(const at::Tensor& one, const at::Tensor& other, NormTolerance within, const std::string& what) {
  const auto difference = one.numel() == 0 ? 0.0 : (one - other).abs().max().item<double>();
  expect(one.sizes() == other.sizes() && at::allclose(one, other, within.relative, within.absolute),
         what + " differs by " + std::to_string(difference));
}

/// A gradient that is one rank's part becomes the sum over all of them.
at::Tensor summed_over(const ProcessGroup& group, const at::Tensor& part) {
  auto sum = part.defined() ? part.clone() : at::zeros({kChannels}, here());
  all_reduce(group, sum);
  return sum;
}

/// Two steps of training, then eval, against a BatchNorm that has the whole batch.
template <class BatchNorm>
void check_against(const ProcessGroup& group, const nn::BatchNormOptions& options, at::IntArrayRef shape, int none,
                   at::ScalarType type = at::kFloat) {
  const double fine = group_device.is_cuda() ? 1e-10 : 1e-12;  // cuDNN's own order of sums
  const NormTolerance within = type == at::kDouble ? NormTolerance{fine, fine} : NormTolerance{1e-4, 1e-5};
  const RowsOfRank rows(group, none);
  std::vector<std::int64_t> sizes{rows.all, kChannels};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  SyncBatchNorm synced(options, group);
  BatchNorm whole(options);
  synced->to(group_device, type);
  whole->to(group_device, type);
  at::manual_seed(7);
  for (int step = 0; step < 2; ++step) {
    const auto all = (at::randn(sizes) * 2 + 5).to(here(type)), slopes = at::randn(sizes).to(here(type));
    auto own_input = rows.of(all).clone().requires_grad_(), input = all.clone().requires_grad_();
    synced->zero_grad();
    whole->zero_grad();
    auto own = synced(own_input);
    auto expected = whole(input);
    expect_close(own, rows.of(expected), within, "output");
    (own * rows.of(slopes)).sum().backward();
    (expected * slopes).sum().backward();
    expect_close(own_input.grad(), rows.of(input.grad()), within, "gradient of the input");
    if (!options.affine()) continue;
    expect_close(summed_over(group, synced->weight.grad()), whole->weight.grad(), within, "gradient of the weight");
    expect_close(summed_over(group, synced->bias.grad()), whole->bias.grad(), within, "gradient of the bias");
  }
  if (options.track_running_stats()) {
    expect_close(synced->running_mean, whole->running_mean, within, "running mean");
    expect_close(synced->running_var, whole->running_var, within, "running variance");
  }
  synced->eval();
  whole->eval();
  const auto last = at::ones(sizes, here(type));
  expect_close(synced(last), whole(last), within, "output in eval mode");
}

void sync_batch_norm() {
  auto group = join_as_asked();
  const nn::BatchNormOptions options(kChannels);
  check_against<nn::BatchNorm2d>(group, options, {4, 5}, -1);
  check_against<nn::BatchNorm2d>(group, options, {4, 5}, -1, at::kDouble);
  check_against<nn::BatchNorm1d>(group, options, {}, -1, at::kDouble);
  check_against<nn::BatchNorm3d>(group, nn::BatchNormOptions(kChannels).momentum(std::nullopt).eps(0.1), {2, 1, 3}, -1);
  check_against<nn::BatchNorm1d>(group, nn::BatchNormOptions(kChannels).affine(false), {6}, -1);
  check_against<nn::BatchNorm1d>(group, nn::BatchNormOptions(kChannels).track_running_stats(false), {6}, -1);
  check_against<nn::BatchNorm2d>(group, options, {4, 5}, group.world_size() - 1);
}

at::Tensor loss_of(const at::Tensor& output) { return output.square().mean(); }

/// Data parallel training of a converted model is that of one process with the whole batch.
void sync_batch_norm_training() {
  auto group = join_as_asked();
  const auto make = [] {
    at::manual_seed(3);
    return nn::Sequential(nn::Linear(4, kChannels), nn::BatchNorm1d(kChannels), nn::ReLU(),
                          nn::Linear(kChannels, kChannels), nn::BatchNorm1d(kChannels));
  };
  auto whole = make(), converted = convert_sync_batchnorm(make(), group);
  whole->to(group_device, at::kDouble);
  converted->to(group_device, at::kDouble);
  DistributedDataParallel parallel(converted, group);
  for (int step = 0; step < 3; ++step) {
    const auto batch = at::randn({4 * group.world_size(), 4}, at::kDouble).to(group_device);
    loss_of(whole->forward(batch)).backward();
    loss_of(parallel(batch.narrow(0, 4 * group.rank(), 4))).backward();
    const auto theirs = whole->parameters(), ours = converted->parameters();
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      expect_close(ours[i].grad(), theirs[i].grad(), {1e-9, 1e-12}, "gradient " + std::to_string(i));
      ours[i].sub_(ours[i].grad(), 0.1);
      theirs[i].sub_(theirs[i].grad(), 0.1);
    }
    whole->zero_grad();
    parallel.zero_grad();
  }
}

}  // namespace

std::map<std::string, Scenario> sync_batch_norm_scenarios() {
  return {{"sync_batch_norm", sync_batch_norm}, {"sync_batch_norm_training", sync_batch_norm_training}};
}

}  // namespace taas::test
