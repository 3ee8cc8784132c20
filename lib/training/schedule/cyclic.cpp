#include "training/schedule/cyclic.hpp"

#include <cmath>

// As rates.cpp, this is Python's arithmetic in Python's order, and compiled without fused multiply-adds.

namespace taas {
namespace {

struct CyclePosition {
  std::int64_t cycle = 1;  ///< counted from 1
  double height = 0;       ///< 0 at base_lr, 1 at max_lr
};

CyclePosition position_at(const CyclicLR& schedule, std::int64_t step) {
  const auto up = static_cast<double>(schedule.step_size_up);
  const double total = up + static_cast<double>(schedule.step_size_down.value_or(schedule.step_size_up));
  const double peak = up / total, passed = static_cast<double>(step) / total;
  const double cycle = std::floor(1 + passed), part = 1.0 + passed - cycle;
  return {static_cast<std::int64_t>(cycle), part <= peak ? part / peak : (part - 1) / (peak - 1)};
}

/// What the heights of this step are multiplied with.
double scale_at(const CyclicLR& schedule, std::int64_t cycle, std::int64_t step) {
  if (schedule.scale_fn) return schedule.scale_fn(schedule.scale_mode == CyclicScale::kCycle ? cycle : step);
  switch (schedule.mode) {
    case CyclicMode::kTriangular2:
      return 1 / std::pow(2.0, static_cast<double>(cycle - 1));
    case CyclicMode::kExpRange:
      return std::pow(schedule.gamma, static_cast<double>(step));
    case CyclicMode::kTriangular:
      break;
  }
  return 1.0;
}

}  // namespace

RatesAndMomenta cycle_start(const CyclicLR& schedule, std::size_t groups) {
  RatesAndMomenta start;
  for (std::size_t group = 0; group < groups; ++group) {
    start.rates.push_back(of_group(schedule.base_lr, group));
    start.momenta.push_back(of_group(schedule.max_momentum, group));
  }
  return start;
}

RatesAndMomenta rates_and_momenta(const CyclicLR& schedule, const Moment& now) {
  const auto [cycle, height] = position_at(schedule, now.step);
  const double scale = scale_at(schedule, cycle, now.step);
  RatesAndMomenta result;
  for (std::size_t group = 0; group < now.base.size(); ++group) {
    const double rise = (of_group(schedule.max_lr, group) - now.base[group]) * height;
    result.rates.push_back(now.base[group] + rise * scale);
    const double most = of_group(schedule.max_momentum, group);
    const double fall = (most - of_group(schedule.base_momentum, group)) * height;
    result.momenta.push_back(most - fall * scale);
  }
  return result;
}

}  // namespace taas
