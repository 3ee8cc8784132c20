#include "training/schedule/one_cycle.hpp"

#include <cmath>
#include <numbers>
#include <string>

#include "taas/error.hpp"

// As rates.cpp, this is Python's arithmetic in Python's order, and compiled without fused multiply-adds.

namespace taas {
namespace {

/// Which of its marks a quantity goes from and to: the rates' are initial, greatest and least, the momentum's greatest
/// and base.
enum class Mark { kInitial, kGreatest, kLeast };

struct CyclePhase {
  double end = 0;
  Mark from_rate = Mark::kInitial, to_rate = Mark::kGreatest;
  bool from_high_momentum = true, to_high_momentum = false;
};

std::vector<CyclePhase> phases_of(const OneCycleLR& schedule) {
  const auto total = static_cast<double>(schedule.total_steps);
  const CyclePhase up{schedule.pct_start * total - 1, Mark::kInitial, Mark::kGreatest, true, false};
  if (!schedule.three_phase) return {up, {total - 1, Mark::kGreatest, Mark::kLeast, false, true}};
  return {up,
          {2 * schedule.pct_start * total - 2, Mark::kGreatest, Mark::kInitial, false, true},
          {total - 1, Mark::kInitial, Mark::kLeast, true, true}};
}

double annealed(Anneal strategy, double from, double to, double part) {
  if (strategy == Anneal::kLinear) return (to - from) * part + from;
  const double cosine = std::cos(std::numbers::pi * part) + 1;
  return to + (from - to) / 2.0 * cosine;
}

double rate_at(const OneCycleLR& schedule, std::size_t group, Mark mark) {
  const double greatest = of_group(schedule.max_lr, group);
  if (mark == Mark::kGreatest) return greatest;
  const double initial = greatest / schedule.div_factor;
  return mark == Mark::kInitial ? initial : initial / schedule.final_div_factor;
}

struct PhasePart {
  CyclePhase phase;
  double part = 0;  ///< of the phase that is over
};

PhasePart phase_at(const OneCycleLR& schedule, std::int64_t step) {
  const auto phases = phases_of(schedule);
  const auto now = static_cast<double>(step);
  double begin = 0;
  std::size_t index = 0;
  while (index + 1 < phases.size() && now > phases[index].end) begin = phases[index++].end;
  return {phases[index], (now - begin) / (phases[index].end - begin)};
}

}  // namespace

std::vector<double> initial_rates(const OneCycleLR& schedule, std::size_t groups) {
  std::vector<double> rates;
  for (std::size_t group = 0; group < groups; ++group) rates.push_back(rate_at(schedule, group, Mark::kInitial));
  return rates;
}

RatesAndMomenta rates_and_momenta(const OneCycleLR& schedule, const Moment& now) {
  if (now.step > schedule.total_steps)
    throw InvalidArgument("OneCycleLR: step " + std::to_string(now.step) + " lies behind its total_steps, " +
                          std::to_string(schedule.total_steps));
  const auto [phase, part] = phase_at(schedule, now.step);
  RatesAndMomenta result;
  for (std::size_t group = 0; group < now.base.size(); ++group) {
    result.rates.push_back(annealed(schedule.anneal_strategy, rate_at(schedule, group, phase.from_rate),
                                    rate_at(schedule, group, phase.to_rate), part));
  }
  const auto momentum = [&](bool high) { return high ? schedule.max_momentum : schedule.base_momentum; };
  result.momenta.assign(now.base.size(), annealed(schedule.anneal_strategy, momentum(phase.from_high_momentum),
                                                  momentum(phase.to_high_momentum), part));
  return result;
}

}  // namespace taas
