#include "taas/lr_scheduler.hpp"

#include <ATen/core/Dict.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "taas/error.hpp"

// Each formula computes what its line in Python's torch/optim/lr_scheduler.py computes, in its order: the doubles are
// equal to the bit. This file is compiled without fused multiply-adds for that reason.

namespace taas {
namespace {

using torch::optim::Optimizer;
using Dict = c10::impl::GenericDict;
using Rates = std::vector<double>;  // one for each parameter group

/// The momentum of SGD and RMSprop, beta1 of Adam and AdamW, null for others.
double* momentum_of(torch::optim::OptimizerOptions& options) {
  if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&options)) return &sgd->momentum();
  if (auto* rmsprop = dynamic_cast<torch::optim::RMSpropOptions*>(&options)) return &rmsprop->momentum();
  if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&options)) return &std::get<0>(adam->betas());
  if (auto* adamw = dynamic_cast<torch::optim::AdamWOptions*>(&options)) return &std::get<0>(adamw->betas());
  return nullptr;
}

void require(bool good, const std::string& what) {
  if (!good) throw InvalidArgument(what);
}

void require_positive(const std::string& option, std::int64_t value) {
  require(value > 0, option + " has to be positive, and is " + std::to_string(value));
}

void require_share(const std::string& option, double value) {
  require(value >= 0 && value <= 1, option + " has to be between 0 and 1, and is " + std::to_string(value));
}

void check_cycle(const OneCycleLR& cycle, Optimizer& optimizer) {
  auto& groups = optimizer.param_groups();
  const auto values = cycle.max_lr.size();
  require(values == 1 || values == groups.size(), "OneCycleLR: max_lr has " + std::to_string(values) +
                                                      " values, and the optimizer " + std::to_string(groups.size()) +
                                                      " parameter groups: give one for all, or one for each");
  require_positive("OneCycleLR: total_steps", cycle.total_steps);
  require_share("OneCycleLR: pct_start", cycle.pct_start);
  for (auto& group : groups)
    require(!cycle.cycle_momentum || momentum_of(group.options()) != nullptr,
            "OneCycleLR: this optimizer has neither momentum nor beta1: set cycle_momentum to false");
}

/// Throws InvalidArgument, which names the option, where schedules cannot work for the optimizer.
void check(const SequentialLR& sequence, Optimizer& optimizer) {
  const auto schedules = sequence.schedules.size(), milestones = sequence.milestones.size();
  require(schedules > 0, "SequentialLR: it has no schedules: give one or more");
  require(milestones + 1 == schedules,
          "SequentialLR: " + std::to_string(schedules) + " schedules need one milestone less, and have " +
              std::to_string(milestones) + ": give the step at which each but the first begins");
  for (const auto& schedule : sequence.schedules) {
    if (const auto* step = std::get_if<StepLR>(&schedule)) {
      require_positive("StepLR: step_size", step->step_size);
    } else if (const auto* linear = std::get_if<LinearLR>(&schedule)) {
      require_share("LinearLR: start_factor", linear->start_factor);
      require(linear->start_factor > 0, "LinearLR: start_factor has to be above 0");
      require_share("LinearLR: end_factor", linear->end_factor);
      require_positive("LinearLR: total_iters", linear->total_iters);
    } else if (const auto* cosine = std::get_if<CosineAnnealingLR>(&schedule)) {
      require_positive("CosineAnnealingLR: T_max", cosine->T_max);
    } else {
      check_cycle(std::get<OneCycleLR>(schedule), optimizer);
    }
  }
}

/// Why a rate is computed: the scheduler is made (step 0); its turn in a SequentialLR begins (step 0 again, by Python's
/// _get_closed_form_lr() where there is one); it makes a step.
enum class Occasion { kMade, kTurn, kStep };

/// What the rate of a parameter group is computed from.
struct Moment {
  Occasion occasion;
  std::int64_t step;
  std::size_t group;
  double base;     ///< Python's base_lrs[group]
  double current;  ///< the rate in the optimizer
};

double next_rate(const StepLR& schedule, const Moment& now) {
  if (now.occasion == Occasion::kTurn) return now.base;
  const bool stays = now.step == 0 || now.step % schedule.step_size != 0;
  return stays ? now.current : now.current * schedule.gamma;
}

double next_rate(const LinearLR& schedule, const Moment& now) {
  const double rise = schedule.end_factor - schedule.start_factor;
  const auto total = static_cast<double>(schedule.total_iters), step = static_cast<double>(now.step);
  if (now.occasion == Occasion::kTurn) return now.base * (schedule.start_factor + rise * std::min(total, step) / total);
  if (now.step == 0) return now.current * schedule.start_factor;
  if (now.step > schedule.total_iters) return now.current;
  return now.current * (1.0 + rise / (total * schedule.start_factor + (step - 1) * rise));
}

double next_rate(const CosineAnnealingLR& schedule, const Moment& now) {
  const double pi = std::numbers::pi, least = schedule.eta_min;
  const auto length = static_cast<double>(schedule.T_max), step = static_cast<double>(now.step);
  if (now.occasion == Occasion::kMade) return now.current;
  if (now.occasion == Occasion::kTurn) return least + (now.base - least) * (1 + std::cos(pi * step / length)) / 2;
  if ((now.step - 1 - schedule.T_max) % (2 * schedule.T_max) == 0)
    return now.current + (now.base - least) * (1 - std::cos(pi / length)) / 2;
  const double ratio = (1 + std::cos(pi * step / length)) / (1 + std::cos(pi * (step - 1) / length));
  return ratio * (now.current - least) + least;
}

double annealed(Anneal strategy, double from, double to, double part) {
  if (strategy == Anneal::kLinear) return (to - from) * part + from;
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
}

double greatest_rate(const OneCycleLR& schedule, std::size_t group) {
  return schedule.max_lr[schedule.max_lr.size() == 1 ? 0 : group];
}

struct CyclePoint {
  double step, rate, momentum;
};

/// Where a group is in the one-cycle policy.
CyclePoint cycle_point(const OneCycleLR& cycle, const Moment& now) {
  if (now.step > cycle.total_steps)
    throw InvalidArgument("OneCycleLR: step " + std::to_string(now.step) + " is beyond total_steps, which is " +
                          std::to_string(cycle.total_steps) + ": give it as many steps as the whole training has");
  const double greatest = greatest_rate(cycle, now.group), initial = greatest / cycle.div_factor;
  const auto total = static_cast<double>(cycle.total_steps), step = static_cast<double>(now.step);
  std::vector<CyclePoint> points{{0, initial, cycle.max_momentum},
                                 {cycle.pct_start * total - 1, greatest, cycle.base_momentum}};
  if (cycle.three_phase) points.push_back({2 * cycle.pct_start * total - 2, initial, cycle.max_momentum});
  points.push_back({total - 1, initial / cycle.final_div_factor, cycle.max_momentum});
  std::size_t next = 1;
  while (next + 1 < points.size() && step > points[next].step) ++next;
  const CyclePoint from = points[next - 1], to = points[next];
  const double part = (step - from.step) / (to.step - from.step);
  return {step, annealed(cycle.anneal_strategy, from.rate, to.rate, part),
          annealed(cycle.anneal_strategy, from.momentum, to.momentum, part)};
}

double next_rate(const OneCycleLR& schedule, const Moment& now) { return cycle_point(schedule, now).rate; }

c10::IValue list_of(const Rates& rates) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (double rate : rates) list.push_back(rate);
  return list;
}

Rates rates_in(const c10::IValue& list, std::size_t groups) {
  Rates rates;
  for (const auto& value : list.toListRef()) rates.push_back(value.toScalar().toDouble());
  if (rates.size() != groups) throw std::invalid_argument("of another optimizer");
  return rates;
}

/// One schedule at work: Python's class of its name.
struct SingleScheduler {
  SingleLRSchedule schedule;
  Rates base_rates;
  std::int64_t step = 0;
  std::int64_t step_count = 1;
  Rates last_rates = base_rates;

  void set(Optimizer& optimizer, Occasion occasion, std::int64_t new_step) {
    step = new_step;
    auto& groups = optimizer.param_groups();
    if (groups.size() != base_rates.size())
      throw InvalidArgument("the optimizer has " + std::to_string(groups.size()) + " parameter groups, and had " +
                            std::to_string(base_rates.size()) + " for its LRScheduler: add groups before that is made");
    const auto* cycle = std::get_if<OneCycleLR>(&schedule);
    for (std::size_t group = 0; group < groups.size(); ++group) {
      auto& options = groups[group].options();
      const Moment now{occasion, step, group, base_rates[group], options.get_lr()};
      last_rates[group] = std::visit([&](const auto& of) { return next_rate(of, now); }, schedule);
      options.set_lr(last_rates[group]);
      if (cycle != nullptr && cycle->cycle_momentum) *momentum_of(options) = cycle_point(*cycle, now).momentum;
    }
  }

  [[nodiscard]] Dict state() const {
    Dict state(c10::StringType::get(), c10::AnyType::get());
    state.insert("base_lrs", list_of(base_rates));
    state.insert("last_epoch", step);
    state.insert("_step_count", step_count);
    state.insert("_last_lr", list_of(last_rates));
    return state;
  }

  void load(const Dict& state) {
    base_rates = rates_in(state.at("base_lrs"), base_rates.size());
    step = state.at("last_epoch").toInt();
    step_count = state.at("_step_count").toInt();
    last_rates = rates_in(state.at("_last_lr"), base_rates.size());
  }
};

void set_rates(Optimizer& optimizer, const Rates& rates) {
  for (std::size_t group = 0; group < rates.size(); ++group)
    optimizer.param_groups()[group].options().set_lr(rates[group]);
}

}  // namespace

/// A single schedule is a sequence of one, but for its state.
struct LRScheduler::Impl {
  Optimizer& optimizer;
  bool is_sequence = false;
  std::vector<std::int64_t> milestones{};
  std::vector<SingleScheduler> parts{};
  std::int64_t step = 0;

  /// The index of the part that sets the rates.
  [[nodiscard]] std::size_t turn() const {
    return static_cast<std::size_t>(std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin());
  }
};

LRScheduler::LRScheduler(Optimizer& optimizer, const LRSchedule& schedule)
    : impl_(std::make_unique<Impl>(Impl{optimizer, std::holds_alternative<SequentialLR>(schedule)})) {
  const auto sequence =
      impl_->is_sequence ? std::get<SequentialLR>(schedule) : SequentialLR{{std::get<SingleLRSchedule>(schedule)}, {}};
  check(sequence, optimizer);
  impl_->milestones = sequence.milestones;
  Rates initial;  // Python's "initial_lr", which OneCycleLR sets
  for (const auto& group : optimizer.param_groups()) initial.push_back(group.options().get_lr());
  for (const auto& single : sequence.schedules) {
    const auto* cycle = std::get_if<OneCycleLR>(&single);
    for (std::size_t group = 0; cycle != nullptr && group < initial.size(); ++group)
      initial[group] = greatest_rate(*cycle, group) / cycle->div_factor;
    auto& part = impl_->parts.emplace_back(SingleScheduler{single, initial});
    part.set(optimizer, Occasion::kMade, 0);
    part.step = -1;  // as in Python, until its turn
  }
  set_rates(optimizer, initial);
  impl_->parts[impl_->turn()].set(optimizer, Occasion::kMade, 0);
}

LRScheduler::LRScheduler(LRScheduler&&) noexcept = default;
LRScheduler& LRScheduler::operator=(LRScheduler&&) noexcept = default;
LRScheduler::~LRScheduler() = default;

void LRScheduler::step() {
  ++impl_->step;
  const auto turn = impl_->turn();
  auto& part = impl_->parts[turn];
  if (turn > 0 && impl_->milestones[turn - 1] == impl_->step) {
    part.set(impl_->optimizer, Occasion::kTurn, 0);  // which Python does not count as a step
  } else {
    ++part.step_count;
    part.set(impl_->optimizer, Occasion::kStep, part.step + 1);
  }
}

const std::vector<double>& LRScheduler::last_lr() const { return impl_->parts[impl_->turn()].last_rates; }

c10::IValue LRScheduler::state() const {
  if (!impl_->is_sequence) return impl_->parts.front().state();
  c10::impl::GenericList states(c10::AnyType::get());
  for (const auto& part : impl_->parts) states.push_back(part.state());
  Dict state(c10::StringType::get(), c10::AnyType::get());
  state.insert("last_epoch", impl_->step);
  state.insert("_last_lr", list_of(last_lr()));
  state.insert("_schedulers", states);
  return state;
}

void LRScheduler::load_state(const c10::IValue& state) {
  auto loaded = std::make_unique<Impl>(*impl_);  // so that a state which is refused changes nothing
  try {
    const auto values = state.toGenericDict();
    std::vector<c10::IValue> states{state};
    if (loaded->is_sequence) states = values.at("_schedulers").toListRef().vec();
    if (states.size() != loaded->parts.size()) throw std::invalid_argument("of another number of schedules");
    for (std::size_t i = 0; i < states.size(); ++i) loaded->parts[i].load(states[i].toGenericDict());
    loaded->step = values.at("last_epoch").toInt();
  } catch (const std::exception&) {
    throw CheckpointError(
        "this is not the state of a scheduler with the same schedule and groups: give load_state() what state() gave");
  }
  impl_ = std::move(loaded);
  set_rates(impl_->optimizer, last_lr());
}

}  // namespace taas
