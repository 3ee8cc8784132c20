#pragma once

#include <vector>

#include "training/schedule/momenta.hpp"
#include "training/schedule/rates.hpp"

namespace taas {

/// The rates that Python keeps in the groups as "initial_lr".
std::vector<double> initial_rates(const OneCycleLR& schedule, std::size_t groups);

/// In a step. Throws InvalidArgument behind the last one.
RatesAndMomenta rates_and_momenta(const OneCycleLR& schedule, const Moment& now);

}  // namespace taas
