#pragma once

#include "training/schedule/momenta.hpp"
#include "training/schedule/rates.hpp"

namespace taas {

/// What the groups have before the first step: base_lr, and the greatest momentum.
RatesAndMomenta cycle_start(const CyclicLR& schedule, std::size_t groups);

/// In a step.
RatesAndMomenta rates_and_momenta(const CyclicLR& schedule, const Moment& now);

}  // namespace taas
