#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>

#include "taas/process_group.hpp"

namespace taas {

/// Batch normalisation over the batches of all ranks of a group, as Python's torch.nn.SyncBatchNorm: in training the
/// mean and the variance are those of the ranks' batches together, which may have different sizes, also 0. With a
/// group of one process, without a group, and in eval mode it is torch::nn::BatchNorm. Parameters, buffers and options
/// are those of BatchNorm, and so are their names in a state.
///
/// On a GPU it runs torch's kernels for it, in the order of torch/nn/modules/_functions.py: Python's numbers. On the
/// CPU, where Python refuses it, plain operations: sums over the ranks are taken in float64, in the order of the ranks.
class SyncBatchNormImpl : public torch::nn::NormImplBase<1, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using Options = torch::nn::BatchNormOptions;
  explicit SyncBatchNormImpl(const Options& the_options, std::optional<ProcessGroup> group = std::nullopt);
  explicit SyncBatchNormImpl(std::int64_t num_features, std::optional<ProcessGroup> group = std::nullopt)
      : SyncBatchNormImpl(Options(num_features), std::move(group)) {}

  /// `input` [batch, num_features, …], of any number of dimensions from 2 on, is normalised for each channel. All
  /// ranks of the group call it, and each one's backward. Throws InvalidArgument for another shape.
  at::Tensor forward(const at::Tensor& input);

  /// For a module that is built before the group is there.
  void set_group(const ProcessGroup& group) { group_ = group; }

  /// Has the same tensors as a BatchNorm1d, 2d or 3d of the same options: an optimizer of that one's parameters works
  /// for this one.
  void share(const torch::nn::Module& batch_norm);

  void pretty_print(std::ostream& stream) const override;

 protected:
  void _check_input_dim(const at::Tensor& input) override;

 private:
  double next_momentum();

  std::optional<ProcessGroup> group_;
};
TORCH_MODULE(SyncBatchNorm);

/// A Sequential with SyncBatchNorm in the place of each BatchNorm1d, 2d and 3d. All other modules, and all parameters
/// and buffers, are those of `module`, which is not to be used any more.
///
/// A class of the program's own has its modules as members of fixed types, which nothing can replace from outside: one
/// with a BatchNorm is an InvalidArgument that names it. Declare taas::SyncBatchNorm there instead, and give it the
/// group by set_group() where it is not known yet.
torch::nn::Sequential convert_sync_batchnorm(const torch::nn::Sequential& module, const ProcessGroup& group);

/// Gives `group` to every SyncBatchNorm within `module`.
void set_sync_batchnorm_group(const torch::nn::Module& module, const ProcessGroup& group);

}  // namespace taas
