#include "training/schedule/rates.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

// Each line computes what its line in Python computes, in its order: the doubles are equal to the bit. This file is
// compiled without fused multiply-adds for that reason.

namespace taas {
namespace {

using Rates = std::vector<double>;

/// `change(rate)` of each.
template <class Change>
Rates each(const Rates& rates, Change change) {
  Rates changed;
  for (double rate : rates) changed.push_back(change(rate));
  return changed;
}

Rates times(const Rates& rates, double factor) {
  return each(rates, [factor](double rate) { return rate * factor; });
}

/// Times the function of each group; one may be for all.
Rates times_each(const Rates& rates, const std::vector<std::function<double(std::int64_t)>>& functions,
                 std::int64_t step) {
  Rates changed;
  for (std::size_t group = 0; group < rates.size(); ++group)
    changed.push_back(rates[group] * of_group(functions, group)(step));
  return changed;
}

double half_cosine(double base, double least, double angle) {
  return least + (base - least) * (1 + std::cos(angle)) / 2;
}

}  // namespace

std::vector<double> rates_of(const LambdaLR& schedule, const Moment& now) {
  return times_each(now.base, schedule.lr_lambda, now.step);
}

std::vector<double> rates_of(const MultiplicativeLR& schedule, const Moment& now) {
  return now.is_first ? now.current : times_each(now.current, schedule.lr_lambda, now.step);
}

std::vector<double> rates_of(const StepLR& schedule, const Moment& now) {
  if (now.is_turn) return now.base;
  const bool stays = now.step == 0 || now.step % schedule.step_size != 0;
  return stays ? now.current : times(now.current, schedule.gamma);
}

std::vector<double> rates_of(const MultiStepLR& schedule, const Moment& now) {
  const auto& all = schedule.milestones;
  if (now.is_turn) {
    const auto passed = std::count_if(all.begin(), all.end(), [](auto milestone) { return milestone <= 0; });
    return times(now.base, std::pow(schedule.gamma, static_cast<double>(passed)));
  }
  const auto here = std::count(all.begin(), all.end(), now.step);
  return here == 0 ? now.current : times(now.current, std::pow(schedule.gamma, static_cast<double>(here)));
}

std::vector<double> rates_of(const ConstantLR& schedule, const Moment& now) {
  if (now.is_turn) {
    const double is_over = schedule.total_iters <= 0 ? 1 : 0;
    return times(now.base, schedule.factor + is_over * (1 - schedule.factor));
  }
  if (now.step == 0) return times(now.current, schedule.factor);
  return now.step == schedule.total_iters ? times(now.current, 1.0 / schedule.factor) : now.current;
}

std::vector<double> rates_of(const LinearLR& schedule, const Moment& now) {
  const double rise = schedule.end_factor - schedule.start_factor;
  const auto total = static_cast<double>(schedule.total_iters), step = static_cast<double>(now.step);
  if (now.is_turn) return times(now.base, schedule.start_factor + rise * std::min(total, step) / total);
  if (now.step == 0) return times(now.current, schedule.start_factor);
  if (now.is_first || now.step > schedule.total_iters) return now.current;
  return times(now.current, 1.0 + rise / (total * schedule.start_factor + (step - 1) * rise));
}

std::vector<double> rates_of(const ExponentialLR& schedule, const Moment& now) {
  if (now.is_turn) return now.base;
  return now.is_first ? now.current : times(now.current, schedule.gamma);
}

std::vector<double> rates_of(const PolynomialLR& schedule, const Moment& now) {
  const auto total = static_cast<double>(schedule.total_iters), step = static_cast<double>(now.step);
  if (now.is_turn) return now.base;
  if (now.is_first || now.step > schedule.total_iters) return now.current;
  const double decay = (1.0 - step / total) / (1.0 - (step - 1) / total);
  return times(now.current, std::pow(decay, schedule.power));
}

std::vector<double> rates_of(const CosineAnnealingLR& schedule, const Moment& now) {
  const double pi = std::numbers::pi, least = schedule.eta_min;
  const auto length = static_cast<double>(schedule.T_max), step = static_cast<double>(now.step);
  if (now.is_turn) return each(now.base, [&](double base) { return half_cosine(base, least, pi * step / length); });
  if (now.is_first) return now.current;
  if ((now.step - 1 - schedule.T_max) % (2 * schedule.T_max) == 0) {
    Rates rates;
    for (std::size_t group = 0; group < now.base.size(); ++group)
      rates.push_back(now.current[group] + (now.base[group] - least) * (1 - std::cos(pi / length)) / 2);
    return rates;
  }
  const double ratio = (1 + std::cos(pi * step / length)) / (1 + std::cos(pi * (step - 1) / length));
  return each(now.current, [&](double rate) { return ratio * (rate - least) + least; });
}

std::vector<double> rates_of(const CosineAnnealingWarmRestarts& schedule, const Moment& now) {
  const double angle = std::numbers::pi * static_cast<double>(now.cycle_step) / static_cast<double>(now.cycle_length);
  return each(now.base, [&](double base) { return half_cosine(base, schedule.eta_min, angle); });
}

void count_cycle(const CosineAnnealingWarmRestarts& schedule, Moment& now) {
  if (now.step < 0) {
    now.cycle_step = 0;
    now.cycle_length = schedule.T_0;
  } else if (++now.cycle_step >= now.cycle_length) {
    now.cycle_step %= now.cycle_length;
    now.cycle_length *= schedule.T_mult;
  }
}

}  // namespace taas
