#pragma once

#include <torch/optim/lbfgs.h>

#include "training/optim/kind_of.hpp"
#include "training/optim/state_fields.hpp"

namespace taas {

/// LBFGS has one state for all parameters, under the first of them, whose directions hold all numbers of all
/// parameters in one row. Python has fewer fields before the first iteration, and numbers where libtorch has tensors.
class LbfgsKind : public KindOf<torch::optim::LBFGSOptions, torch::optim::LBFGSParamState> {
 public:
  void check_state(std::int64_t index, const std::vector<at::Tensor>& parameters,
                   const StateFields& fields) const override;
  [[nodiscard]] std::unique_ptr<torch::optim::OptimizerParamState> state_with(const StateFields& fields,
                                                                              c10::Device device,
                                                                              bool takes) const override;
};

}  // namespace taas
