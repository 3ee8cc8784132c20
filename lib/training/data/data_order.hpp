#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "taas/data.hpp"
#include "training/making/data_task.hpp"

namespace taas {

/// One batch that is to be made.
struct OrderedTask {
  std::string bytes;         ///< what its maker is given: see BatchMaker::make
  std::uint64_t number = 0;  ///< of the epoch, counted from 0
  std::size_t examples = 0;
};

/// The batches of an epoch, in the order in which a sampler draws their indices.
class SampledOrder {
 public:
  /// The sampler, which has been reset, is drawn from by nobody else, and outlives this.
  SampledOrder(torch::data::samplers::Sampler<>& sampler, std::size_t batch_size, bool drop_last, DataSeeds seeds)
      : sampler_(sampler), batch_size_(batch_size), drop_last_(drop_last), seeds_(seeds) {}

  /// Nothing when the sampler has no more.
  std::optional<OrderedTask> next();
  /// Draws, and drops, so many batches.
  void skip(std::int64_t batches);

 private:
  torch::data::samplers::Sampler<>& sampler_;
  std::size_t batch_size_;
  bool drop_last_;
  DataSeeds seeds_;
  std::uint64_t drawn_ = 0;  // batches
  bool drained_ = false;
};

}  // namespace taas
