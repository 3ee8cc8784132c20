#pragma once

#include <torch/nn/modules/linear.h>

#include "taas/distributed_data_parallel.hpp"

// What the scenarios of hooks train.

namespace taas::test {

/// One for each parameter.
inline constexpr DistributedDataParallelOptions kManyBuckets{.bucket_cap_mb = 0.000001};

/// Each gradient of the weight is `input` on this rank.
inline void one_step(DistributedDataParallel<torch::nn::LinearImpl>& model, float input) {
  model.zero_grad();
  model(at::full({1, model.module().options.in_features()}, input)).sum().backward();
}

}  // namespace taas::test
