#pragma once

#include <cstdint>
#include <vector>

#include "training/schedule/schedule_run.hpp"

namespace taas {

/// Where a schedule is, and what its next rates are made of.
struct Moment {
  std::int64_t step = -1;
  bool is_first = false;         ///< the scheduler is being made
  bool is_turn = false;          ///< it is its turn in a SequentialLR: step 0 by the closed form
  std::int64_t cycle_step = -1;  ///< of CosineAnnealingWarmRestarts, as is the length of its cycle
  std::int64_t cycle_length = 0;
  std::vector<double> base;     ///< rates
  std::vector<double> current;  ///< rates
};

/// What a group has of a list that may have one for all.
template <class Value>
const Value& of_group(const std::vector<Value>& values, std::size_t group) {
  return values[values.size() == 1 ? 0 : group];
}

// The rates of each group: the formulas of Python's get_lr(), and for `is_turn` of its _get_closed_form_lr() in step 0.
std::vector<double> rates_of(const LambdaLR& schedule, const Moment& now);
std::vector<double> rates_of(const MultiplicativeLR& schedule, const Moment& now);
std::vector<double> rates_of(const StepLR& schedule, const Moment& now);
std::vector<double> rates_of(const MultiStepLR& schedule, const Moment& now);
std::vector<double> rates_of(const ConstantLR& schedule, const Moment& now);
std::vector<double> rates_of(const LinearLR& schedule, const Moment& now);
std::vector<double> rates_of(const ExponentialLR& schedule, const Moment& now);
std::vector<double> rates_of(const PolynomialLR& schedule, const Moment& now);
std::vector<double> rates_of(const CosineAnnealingLR& schedule, const Moment& now);
std::vector<double> rates_of(const CosineAnnealingWarmRestarts& schedule, const Moment& now);

/// Counts a step of the restarts.
void count_cycle(const CosineAnnealingWarmRestarts& schedule, Moment& now);

}  // namespace taas
