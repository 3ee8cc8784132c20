#pragma once

#include <torch/data/samplers/base.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "training/data/data_order.hpp"
#include "training/making/data_task.hpp"

namespace taas {

/// The batches whose indices a sampler draws. The batch n of an epoch has the home n.
class SampledOrder : public BatchOrder {
 public:
  /// The sampler, which has been reset, is drawn from by nobody else, and outlives this.
  SampledOrder(torch::data::samplers::Sampler<>& sampler, std::size_t batch_size, bool drop_last, DataSeeds seeds)
      : sampler_(sampler), batch_size_(batch_size), drop_last_(drop_last), seeds_(seeds) {}

  std::optional<OrderedTask> next() override;
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
