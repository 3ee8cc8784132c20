#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "taas/error.hpp"
#include "taas/lr_scheduler.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/schedule/schedule_run.hpp"

namespace taas {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_better(const PlateauOptions& options, double value, double best) {
  const bool relative = options.threshold_mode == PlateauThreshold::kRel;
  if (options.mode == PlateauMode::kMin) {
    return value < (relative ? best * (1.0 - options.threshold) : best - options.threshold);
  }
  return value > (relative ? best * (options.threshold + 1.0) : best + options.threshold);
}

void check_plateau(const PlateauOptions& options, std::size_t groups) {
  if (!(options.factor < 1)) {
    throw InvalidArgument("ReduceLROnPlateau: factor has to be below 1, and is " + std::to_string(options.factor));
  }
  if (options.min_lr.size() == 1 || options.min_lr.size() == groups) return;
  throw InvalidArgument("ReduceLROnPlateau: min_lr has " + std::to_string(options.min_lr.size()) +
                        " values, and the optimizer " + std::to_string(groups) +
                        " parameter groups: give one for all, or one for each");
}

}  // namespace

ReduceLROnPlateau::ReduceLROnPlateau(torch::optim::Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.mode == PlateauMode::kMin ? kInfinity : -kInfinity),
      last_rates_(ScheduledOptimizer{optimizer, {}}.rates()) {
  check_plateau(options, last_rates_.size());
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(options_, metric, best_)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    bad_epochs_ = 0;
  }
  const ScheduledOptimizer scheduled{optimizer_, {}};
  last_rates_ = scheduled.rates();
  if (bad_epochs_ <= options_.patience) return;
  for (std::size_t i = 0; i < last_rates_.size(); ++i) {
    const auto least = options_.min_lr.size() == 1 ? options_.min_lr.front() : options_.min_lr.at(i);
    const auto rate = std::max(last_rates_[i] * options_.factor, least);
    if (last_rates_[i] - rate > options_.eps) last_rates_[i] = rate;
  }
  scheduled.set_rates(last_rates_);
  cooldown_ = options_.cooldown;
  bad_epochs_ = 0;
}

/// With the options, which Python's load_state_dict() takes over.
c10::IValue ReduceLROnPlateau::state() const {
  const bool lower = options_.mode == PlateauMode::kMin;
  auto least = options_.min_lr;
  if (least.size() == 1) least.resize(last_rates_.size(), least.front());
  auto state = plain_dict();
  state.insert("factor", options_.factor);
  state.insert("default_min_lr", options_.min_lr.size() == 1 ? c10::IValue(options_.min_lr.front()) : c10::IValue());
  state.insert("min_lrs", list_of(least));
  state.insert("patience", options_.patience);
  state.insert("cooldown", options_.cooldown);
  state.insert("eps", options_.eps);
  state.insert("last_epoch", last_epoch_);
  state.insert("_last_lr", list_of(last_rates_));
  state.insert("mode_worse", lower ? kInfinity : -kInfinity);
  state.insert("mode", lower ? "min" : "max");
  state.insert("threshold", options_.threshold);
  state.insert("threshold_mode", options_.threshold_mode == PlateauThreshold::kRel ? "rel" : "abs");
  state.insert("best", best_);
  state.insert("cooldown_counter", cooldown_);
  state.insert("num_bad_epochs", bad_epochs_);
  return state;
}

void ReduceLROnPlateau::load_state(const c10::IValue& state) try {
  const auto fields = state.toGenericDict();
  const auto rates = numbers_in(fields.at("_last_lr"));
  const auto best = fields.at("best").toScalar().toDouble();
  const auto cooldown = fields.at("cooldown_counter").toInt(), bad = fields.at("num_bad_epochs").toInt();
  const auto epoch = fields.at("last_epoch").toInt();
  ScheduledOptimizer{optimizer_, {}}.set_rates(rates);
  last_rates_ = rates;
  best_ = best;
  cooldown_ = cooldown;
  bad_epochs_ = bad;
  last_epoch_ = epoch;
} catch (const std::exception&) {
  throw CheckpointError(
      "this is not the state of ReduceLROnPlateau: give load_state() what state() gave, for as many parameter groups");
}

c10::IValue state_dict(const torch::optim::Optimizer& optimizer, const LRScheduler& schedule, StateTensors tensors) {
  const auto state = state_dict(optimizer, tensors);
  const auto groups = state.toGenericDict().at("param_groups").toList();
  const auto rates = schedule.initial_lr();
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups.get(i).toGenericDict().insert_or_assign("initial_lr", rates.at(i));
  return state;
}

}  // namespace taas
