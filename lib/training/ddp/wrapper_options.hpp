#pragma once

#include <torch/nn/module.h>

#include "taas/ddp/options.hpp"
#include "training/ddp/reducer.hpp"

namespace taas {

/// Throws InvalidArgument for options that do not fit together or that `module` cannot have.
void check_options(const torch::nn::Module& module, const DistributedDataParallelOptions& options);
ReducerOptions reducer_options(const torch::nn::Module& module, const DistributedDataParallelOptions& options);
bool syncs_buffers_in_forward(const DistributedDataParallelOptions& options);
bool syncs_buffers_at_start(const DistributedDataParallelOptions& options);

}  // namespace taas
