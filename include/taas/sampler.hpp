#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace taas {

struct DistributedSamplerOptions {
  std::size_t num_replicas = 1;  ///< how many ranks share the dataset: the world size
  std::size_t rank = 0;          ///< which share this is: 0…num_replicas-1
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< the same on every rank, or the shares overlap
  bool drop_last = false;  ///< leave the uneven tail out instead of filling it up with samples from the front
};

/// Gives each rank its share of a dataset's indices: for every argument, seed and epoch the same indices in the same
/// order as Python's torch.utils.data.DistributedSampler. Works with torch::data::make_data_loader as well.
/// Call set_epoch() before each epoch, or every epoch has the same order.
class DistributedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// Throws InvalidArgument when rank is not below num_replicas.
  DistributedSampler(std::size_t dataset_size, const DistributedSamplerOptions& options);

  /// Takes effect with the next indices() or reset().
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  /// How many samples each rank gets in an epoch: the same number on all of them.
  [[nodiscard]] std::size_t size() const { return samples_; }

  /// This rank's share of the present epoch: int64 on the CPU, [size()]; fit for index_select.
  [[nodiscard]] at::Tensor indices() const;

  /// The interface of torch::data: starts the present epoch over, for a dataset of `new_size` when given.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  /// The next batch, shorter at the end; nothing when the epoch is over.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  /// Epoch and position: what a program needs to go on in the middle of an epoch.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  DistributedSamplerOptions options_;
  std::size_t dataset_size_ = 0;
  std::size_t samples_ = 0;
  std::uint64_t epoch_ = 0;
  std::vector<std::int64_t> order_;  // of the epoch that reset() started
  std::size_t position_ = 0;         // in order_
};

}  // namespace taas
