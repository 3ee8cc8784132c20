#pragma once

#include <ATen/core/ivalue.h>
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
  [[nodiscard]] std::size_t size() const;

  /// This rank's share of the present epoch: int64 on the CPU, [size()]; fit for index_select.
  [[nodiscard]] at::Tensor indices() const;

  /// The interface of torch::data: starts the present epoch over, for a dataset of `new_size` when given.
  void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  /// The next batch, shorter at the end; nothing when the epoch is over.
  std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;

  /// Where the samples that next() has given end, for Checkpoint::extra: {"epoch", "position", "dataset_size",
  /// "world_size", "seed", "shuffle", "drop_last"}, all of them integers. "position" counts the samples that all ranks
  /// together have taken of the epoch, so that the state is the same on each of them. An epoch that set_epoch() has
  /// named, and reset() not yet begun, is in it once the one before is over.
  [[nodiscard]] c10::IValue state() const;
  /// next() goes on from there. With another number of ranks, what is left of the epoch is dealt out among those of
  /// now. Throws CheckpointError, before anything is changed, for the state of another dataset size, seed, shuffle or
  /// drop_last, and for what is no such state.
  void load_state(const c10::IValue& state);

  /// state() and load_state() in an archive of libtorch's.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  /// This rank's share of what is left of the present epoch after `taken` samples.
  [[nodiscard]] at::Tensor share_after(std::size_t taken) const;
  /// Deals the present epoch out, but for the first `taken` samples.
  void deal(std::size_t taken);

  DistributedSamplerOptions options_;
  std::size_t dataset_size_ = 0;
  std::uint64_t epoch_ = 0;
  std::vector<std::int64_t> order_;  // dealt out by the last reset() or load_state()
  std::uint64_t order_epoch_ = 0;    // whose order it is
  std::size_t taken_before_ = 0;     // samples of that epoch, of all ranks, that are not in it
  std::size_t position_ = 0;         // in order_
};

}  // namespace taas
