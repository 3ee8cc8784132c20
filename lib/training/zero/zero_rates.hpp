#pragma once

#include <torch/optim/optimizer.h>

#include <vector>

#include "taas/process_group.hpp"

namespace taas {

/// The rates, momenta (or betas) and weight decays of each group become those of the ranks that have inputs, on which
/// they are the same. A collective.
void agree_on_rates(const ProcessGroup& group, std::vector<torch::optim::OptimizerParamGroup>& groups, bool has_inputs);

}  // namespace taas
