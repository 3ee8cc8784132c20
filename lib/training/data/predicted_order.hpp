#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "training/data/data_loader_state.hpp"
#include "training/data/sampled_order.hpp"

namespace taas {

/// What one rank will most probably ask for in its first loop over a loader, drawn in another process. The sampler
/// draws as if it was alone: from the default generator as it is now, which others leave no trace in.
class PredictedOrder : public BatchOrder {
 public:
  using Sampler = torch::data::samplers::Sampler<>;

  PredictedOrder(const DataLoader::State& loader, std::shared_ptr<Sampler> sampler, std::size_t rank);

  std::optional<OrderedTask> next() override;

 private:
  std::shared_ptr<Sampler> sampler_;
  at::Tensor generator_;  // as the last draw has left it
  SampledOrder order_;
};

}  // namespace taas
