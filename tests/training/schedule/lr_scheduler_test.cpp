#include "taas/lr_scheduler.hpp"

#include <ATen/Functions.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/sgd.h>

#include "catch.hpp"
#include "taas/error.hpp"

namespace lr_scheduler_test {

// Equality with Python to the bit, over 200 steps, is tested by schedule_reference.py.
namespace {

struct Scheduled {
  torch::optim::SGD optimizer{{at::ones({1})}, torch::optim::SGDOptions(0.1).momentum(0.9)};

  [[nodiscard]] double rate() { return optimizer.param_groups()[0].options().get_lr(); }
  void refuse(const taas::LRSchedule& schedule, const char* text) {
    CHECK_THROWS_WITH(taas::LRScheduler(optimizer, schedule), ContainsSubstring(text));
    CHECK(rate() == 0.1);
  }
};

}  // namespace

TEST_CASE("options that cannot work are refused by name, and change nothing") {
  Scheduled scheduled;
  scheduled.refuse(taas::StepLR{.step_size = 0}, "step_size has to be positive, and is 0");
  scheduled.refuse(taas::LinearLR{.start_factor = 0}, "start_factor has to be above 0");
  scheduled.refuse(taas::LinearLR{.end_factor = 1.5}, "end_factor has to be between 0 and 1, and is 1.5");
  scheduled.refuse(taas::CosineAnnealingLR{.T_max = 0}, "T_max has to be positive");
  scheduled.refuse(taas::OneCycleLR{.max_lr = {0.1, 0.2, 0.3}, .total_steps = 3}, "max_lr has 3 values");
  scheduled.refuse(taas::SequentialLR{}, "has no schedules");
  scheduled.refuse(taas::SequentialLR{{taas::StepLR{}, taas::StepLR{}}, {}}, "2 schedules need one milestone less");
  scheduled.refuse(taas::SequentialLR{{taas::LinearLR{}, taas::StepLR{.step_size = -1}}, {3}}, "step_size has to be");
}

TEST_CASE("a one-cycle schedule ends, and wants an optimizer with momentum") {
  Scheduled scheduled;
  taas::LRScheduler scheduler(scheduled.optimizer, taas::OneCycleLR{.max_lr = {0.5}, .total_steps = 2});
  scheduler.step();
  scheduler.step();
  CHECK_THROWS_WITH(scheduler.step(), ContainsSubstring("step 3 is beyond total_steps, which is 2"));
  torch::optim::Adagrad other({at::ones({1})}, 0.1);
  CHECK_THROWS_WITH(taas::LRScheduler(other, taas::OneCycleLR{.max_lr = {0.5}, .total_steps = 2}),
                    ContainsSubstring("set cycle_momentum to false"));
}

TEST_CASE("the state of another schedule is refused, and changes nothing") {
  Scheduled one, other;
  taas::LRScheduler single(one.optimizer, taas::StepLR{});
  taas::LRScheduler sequence(other.optimizer, taas::SequentialLR{{taas::LinearLR{}, taas::StepLR{}}, {5}});
  sequence.step();
  const double rate = other.rate();
  CHECK_THROWS_AS(sequence.load_state(single.state()), taas::CheckpointError);
  CHECK_THROWS_AS(single.load_state(sequence.state()), taas::CheckpointError);
  CHECK_THROWS_AS(single.load_state(c10::IValue()), taas::CheckpointError);
  CHECK((one.rate() == 0.1 && other.rate() == rate));
  CHECK(sequence.last_lr() == std::vector{rate});
}

}  // namespace lr_scheduler_test
