#pragma once

#include <cstddef>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace taas {

/// What schedules that turn momentum the other way round than rates have for a step, each for each group.
struct RatesAndMomenta {
  std::vector<double> rates;
  std::vector<double> momenta;
};

template <class Schedule>
concept CyclesMomentum = requires(const Schedule& schedule) {
  schedule.cycle_momentum;
};

/// Sets the momentum (SGD, RMSprop) or beta1 (Adam, AdamW) of each group. Throws InvalidArgument, which names the
/// schedule, where an optimizer has none.
void set_momenta(torch::optim::Optimizer& optimizer, const std::vector<double>& momenta, const char* schedule);

}  // namespace taas
