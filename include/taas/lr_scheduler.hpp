#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

namespace torch::optim {
class Optimizer;
}

// Learning rate schedules with the names, defaults and numbers of Python's torch.optim.lr_scheduler: the same doubles
// in every step. A schedule is a value that says what the rates are to be, and LRScheduler applies it:
//
//     taas::LRScheduler schedule(optimizer, taas::CosineAnnealingLR{.T_max = 200});
//     for (int step = 0; step < 200; ++step) { …; optimizer.step(); schedule.step(); }
//
// "Rate" is that of each parameter group, "base rate" what it is before the scheduler is made. Steps are counted from
// 0, which the constructor of LRScheduler sets. torch::optim::LRScheduler has neither state nor a first step: hence
// this one.

namespace taas {

/// Times gamma every step_size steps.
struct StepLR {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};

/// From start_factor to end_factor times the base rate in total_iters steps: warm-up.
struct LinearLR {
  double start_factor = 1.0 / 3;  ///< above 0, up to 1
  double end_factor = 1.0;        ///< 0…1
  std::int64_t total_iters = 5;
};

/// Half a cosine from the base rate to eta_min in T_max steps (Loshchilov and Hutter 2017, arXiv:1608.03983, without
/// restarts); back again in the next T_max.
struct CosineAnnealingLR {
  std::int64_t T_max = 1;
  double eta_min = 0.0;
};

enum class Anneal { kCos, kLinear };

/// The one-cycle policy (Smith and Topin 2018, arXiv:1708.07120): from max_lr / div_factor up to max_lr, and down to
/// that / final_div_factor; the momentum (beta1 of Adam and AdamW) the other way round. total_steps is for the whole
/// training: a step() beyond it throws InvalidArgument.
struct OneCycleLR {
  std::vector<double> max_lr;    ///< one for all groups, or one for each
  std::int64_t total_steps = 1;  ///< Python's epochs * steps_per_epoch
  double pct_start = 0.3;        ///< which part of them goes up
  Anneal anneal_strategy = Anneal::kCos;
  bool cycle_momentum = true;  ///< for SGD, RMSprop, Adam and AdamW; others: InvalidArgument
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

/// What a SequentialLR is made of.
using SingleLRSchedule = std::variant<StepLR, LinearLR, CosineAnnealingLR, OneCycleLR>;

/// schedules[0] until step milestones[0], then schedules[1] from its own step 0, and so on. One milestone less than
/// schedules.
struct SequentialLR {
  std::vector<SingleLRSchedule> schedules;
  std::vector<std::int64_t> milestones;
};

using LRSchedule = std::variant<SingleLRSchedule, SequentialLR>;

/// Sets the rates of an optimizer's groups, which must outlive it, as a schedule says.
class LRScheduler {
 public:
  /// Sets the rates of step 0. Throws InvalidArgument for options that do not fit, or not to the optimizer.
  LRScheduler(torch::optim::Optimizer& optimizer, const LRSchedule& schedule);
  LRScheduler(LRScheduler&&) noexcept;
  LRScheduler& operator=(LRScheduler&&) noexcept;
  ~LRScheduler();

  /// The rates of the next step: to be called after the optimizer's step.
  void step();

  /// The rates that were set last, one for each group.
  [[nodiscard]] const std::vector<double>& last_lr() const;

  /// For Checkpoint::extra, with the names of Python's state_dict(). The options of the schedule are not part of it,
  /// nor is momentum, which is in the state of the optimizer.
  [[nodiscard]] c10::IValue state() const;
  /// Goes on from there with the same schedule, and sets the rates that were set last. Python's state is read as well.
  /// Throws CheckpointError, and changes nothing, for what is not the state of such a schedule with as many groups.
  void load_state(const c10::IValue& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace taas
