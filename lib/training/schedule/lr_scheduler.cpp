#include "taas/lr_scheduler.hpp"

#include <utility>

#include "taas/error.hpp"
#include "training/schedule/schedule_checks.hpp"
#include "training/schedule/schedule_run.hpp"

namespace taas {
namespace {

std::shared_ptr<ScheduledOptimizer> checked_optimizer(torch::optim::Optimizer& optimizer, const LRSchedule& schedule) {
  auto scheduled = std::make_shared<ScheduledOptimizer>(ScheduledOptimizer{optimizer, {}});
  check_schedule(schedule, scheduled->rates().size());
  return scheduled;
}

}  // namespace

LRScheduler::LRScheduler(torch::optim::Optimizer& optimizer, const LRSchedule& schedule)
    : optimizer_(checked_optimizer(optimizer, schedule)), run_(make_run(optimizer_, schedule)) {}
LRScheduler::LRScheduler(LRScheduler&&) noexcept = default;
LRScheduler& LRScheduler::operator=(LRScheduler&&) noexcept = default;
LRScheduler::~LRScheduler() = default;

void LRScheduler::step() { run_->step(); }
const std::vector<double>& LRScheduler::last_lr() const { return run_->last_rates; }
const std::vector<double>& LRScheduler::initial_lr() const { return optimizer_->initial_rates; }
c10::IValue LRScheduler::state() const { return run_->state(); }

void LRScheduler::load_state(const c10::IValue& state) {
  try {
    run_->load(state.toGenericDict());
  } catch (const std::exception&) {
    throw CheckpointError(
        "this is not the state of a scheduler with this schedule: give load_state() what state() of the same one gave");
  }
}

}  // namespace taas
