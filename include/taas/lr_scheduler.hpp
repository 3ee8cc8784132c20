#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

/// Rate = base rate times lr_lambda(step). One function for all groups, or one for each.
struct LambdaLR {
  std::vector<std::function<double(std::int64_t)>> lr_lambda;
};

/// Times lr_lambda(step) in each step after 0. One function for all groups, or one for each.
struct MultiplicativeLR {
  std::vector<std::function<double(std::int64_t)>> lr_lambda;
};

/// Times gamma every step_size steps.
struct StepLR {
  std::int64_t step_size = 1;
  double gamma = 0.1;
};

/// Times gamma at each milestone (twice where it is named twice).
struct MultiStepLR {
  std::vector<std::int64_t> milestones;
  double gamma = 0.1;
};

/// Times factor until step total_iters.
struct ConstantLR {
  double factor = 1.0 / 3;  ///< 0…1
  std::int64_t total_iters = 5;
};

/// From start_factor to end_factor times the base rate in total_iters steps: warm-up.
struct LinearLR {
  double start_factor = 1.0 / 3;  ///< above 0, up to 1
  double end_factor = 1.0;        ///< 0…1
  std::int64_t total_iters = 5;
};

/// Times gamma in each step.
struct ExponentialLR {
  double gamma = 0.9;
};

/// Rate = base rate times (1 - step / total_iters) to the power.
struct PolynomialLR {
  std::int64_t total_iters = 5;
  double power = 1.0;
};

/// Half a cosine from the base rate to eta_min in T_max steps (Loshchilov and Hutter 2017, arXiv:1608.03983, without
/// restarts); back again in the next T_max.
struct CosineAnnealingLR {
  std::int64_t T_max = 1;
  double eta_min = 0.0;
};

/// The same, begun again after T_0 steps, and then after T_mult times as many as before.
struct CosineAnnealingWarmRestarts {
  std::int64_t T_0 = 1;
  std::int64_t T_mult = 1;
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

/// How the peaks of CyclicLR change: not at all, by half in each cycle, or by gamma in each step.
enum class CyclicMode { kTriangular, kTriangular2, kExpRange };
/// What scale_fn is a function of: the number of the cycle, from 1, or of the step, from 0.
enum class CyclicScale { kCycle, kIterations };

/// Cyclical rates (Smith 2017, arXiv:1506.01186): up from base_lr to max_lr in step_size_up steps, down again in
/// step_size_down, and so on; the momentum (beta1 of Adam and AdamW) down from max_momentum to base_momentum and up.
/// Rates and momenta are one for all groups, or one for each.
struct CyclicLR {
  std::vector<double> base_lr;
  std::vector<double> max_lr;
  std::int64_t step_size_up = 2000;
  std::optional<std::int64_t> step_size_down{};  ///< by default as step_size_up
  CyclicMode mode = CyclicMode::kTriangular;
  double gamma = 1.0;                              ///< of kExpRange
  std::function<double(std::int64_t)> scale_fn{};  ///< in the place of `mode`
  CyclicScale scale_mode = CyclicScale::kCycle;    ///< of scale_fn
  bool cycle_momentum = true;                      ///< for SGD, RMSprop, Adam and AdamW; others: InvalidArgument
  std::vector<double> base_momentum{0.8};
  std::vector<double> max_momentum{0.9};
};

struct LRSchedule;

/// schedules[0] until step milestones[0], then schedules[1] from its own step 0, and so on. One milestone less than
/// schedules. The first may have schedules itself: it is a step further then than on its own, as in Python.
struct SequentialLR {
  std::vector<LRSchedule> schedules;
  std::vector<std::int64_t> milestones;
};

/// All of them in each step, one after the other.
struct ChainedScheduler {
  std::vector<LRSchedule> schedules;
};

using LRScheduleVariant =
    std::variant<LambdaLR, MultiplicativeLR, StepLR, MultiStepLR, ConstantLR, LinearLR, ExponentialLR, PolynomialLR,
                 CosineAnnealingLR, CosineAnnealingWarmRestarts, OneCycleLR, CyclicLR, SequentialLR, ChainedScheduler>;

struct LRSchedule : LRScheduleVariant {
  using LRScheduleVariant::LRScheduleVariant;
};

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

  /// For Checkpoint::extra, with the names of Python's state_dict(). Functions and options are not part of it,
  /// nor is momentum, which is in the state of the optimizer.
  [[nodiscard]] c10::IValue state() const;
  /// Goes on from there with the same schedule, and sets the rates that were set last. Python's state is read as well.
  /// Throws CheckpointError for the state of another schedule.
  void load_state(const c10::IValue& state);

  class Run;

 private:
  std::unique_ptr<Run> run_;
};

}  // namespace taas
