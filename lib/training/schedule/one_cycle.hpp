#pragma once

#include <vector>

#include "training/schedule/rates.hpp"

namespace taas {

/// The momentum (SGD, RMSprop) or beta1 (Adam, AdamW) of a group's options. Throws InvalidArgument where there is none.
void set_momentum(torch::optim::OptimizerOptions& options, double momentum);

/// The rates that Python keeps in the groups as "initial_lr".
std::vector<double> initial_rates(const OneCycleLR& schedule, std::size_t groups);

struct RatesAndMomentum {
  std::vector<double> rates;
  double momentum = 0;
};

/// In a step. Throws InvalidArgument behind the last one.
RatesAndMomentum one_cycle(const OneCycleLR& schedule, const Moment& now);

}  // namespace taas
