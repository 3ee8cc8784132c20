#pragma once

#include <ATen/core/Dict.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "taas/lr_scheduler.hpp"

namespace taas {

/// What the parts of a schedule share: the optimizer, and the rates that its groups had when the first of them was
/// made. The latter are Python's "initial_lr", which OneCycleLR sets.
struct ScheduledOptimizer {
  torch::optim::Optimizer& optimizer;
  std::vector<double> initial_rates;

  [[nodiscard]] std::vector<double> rates() const;
  void set_rates(const std::vector<double>& rates) const;
};

/// A schedule at work. What its functions do, and in which order, is what Python's classes do.
class LRScheduler::Run {
 public:
  using Dict = c10::impl::GenericDict;

  Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  virtual ~Run() = default;

  /// The first of a SequentialLR: sets the rates of step 0 (again).
  virtual void start() = 0;
  virtual void step() = 0;
  /// As one of a SequentialLR: takes back what the constructor did, and begins where it is its turn.
  virtual void undo() = 0;
  virtual void begin_turn() {}

  [[nodiscard]] virtual Dict state() const = 0;
  /// Throws c10::Error for something else.
  virtual void load(const Dict& state) = 0;

  std::vector<double> last_rates;
};

/// Throws InvalidArgument.
std::unique_ptr<LRScheduler::Run> make_run(const std::shared_ptr<ScheduledOptimizer>& optimizer,
                                           const LRSchedule& schedule);

c10::IValue list_of(const std::vector<double>& numbers);
std::vector<double> numbers_in(const c10::IValue& list);

}  // namespace taas
