#include "taas/lr_scheduler.hpp"

#include <utility>

#include "taas/error.hpp"
#include "training/schedule/schedule_checks.hpp"
#include "training/schedule/schedule_run.hpp"

namespace taas {
namespace {

std::unique_ptr<LRScheduler::Run> run_of(torch::optim::Optimizer& optimizer, const LRSchedule& schedule) {
  auto scheduled = std::make_shared<ScheduledOptimizer>(ScheduledOptimizer{optimizer, {}});
  check_schedule(schedule, scheduled->rates().size());
  return make_run(scheduled, schedule);
}

}  // namespace

LRScheduler::LRScheduler(torch::optim::Optimizer& optimizer, const LRSchedule& schedule)
    : run_(run_of(optimizer, schedule)) {}
LRScheduler::LRScheduler(LRScheduler&&) noexcept = default;
LRScheduler& LRScheduler::operator=(LRScheduler&&) noexcept = default;
LRScheduler::~LRScheduler() = default;

void LRScheduler::step() { run_->step(); }
const std::vector<double>& LRScheduler::last_lr() const { return run_->last_rates; }
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
