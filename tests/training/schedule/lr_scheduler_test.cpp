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

TEST_CASE("a warm-up is followed by half a cosine") {
  Scheduled scheduled;
  taas::LRScheduler scheduler(
      scheduled.optimizer,
      taas::SequentialLR{{taas::LinearLR{.start_factor = 0.1, .total_iters = 2}, taas::CosineAnnealingLR{.T_max = 4}},
                         {2}});
  std::vector<double> rates{scheduled.rate()};
  for (int step = 0; step < 6; ++step) {
    scheduler.step();
    CHECK(scheduler.last_lr() == std::vector{scheduled.rate()});
    rates.push_back(scheduled.rate());
  }
  const double expected[] = {0.01, 0.055, 0.1, 0.0853553, 0.05, 0.0146447, 0};
  for (std::size_t step = 0; step < rates.size(); ++step) CHECK(std::abs(rates[step] - expected[step]) < 1e-6);
}

TEST_CASE("options that cannot work are refused by name, and change nothing") {
  Scheduled scheduled;
  scheduled.refuse(taas::LinearLR{.start_factor = 0}, "start_factor has to be above 0");
  scheduled.refuse(taas::ConstantLR{.factor = 1.5}, "factor has to be between 0 and 1, and is 1.5");
  scheduled.refuse(taas::StepLR{.step_size = 0}, "step_size has to be positive");
  scheduled.refuse(taas::CosineAnnealingLR{.T_max = 0}, "T_max has to be positive");
  scheduled.refuse(taas::LambdaLR{}, "lr_lambda has 0 values, and the optimizer 1 parameter groups");
  scheduled.refuse(taas::OneCycleLR{.max_lr = {0.1, 0.2, 0.3}, .total_steps = 3}, "max_lr has 3 values");
  scheduled.refuse(taas::SequentialLR{{taas::StepLR{}, taas::StepLR{}}, {}}, "2 schedules need one milestone less");
  scheduled.refuse(taas::ChainedScheduler{}, "has no schedules");
  scheduled.refuse(taas::ChainedScheduler{{taas::ChainedScheduler{{taas::StepLR{.step_size = 0}}}}},
                   "step_size has to be positive");
  const taas::SequentialLR one{{taas::StepLR{}}, {}};
  scheduled.refuse(taas::SequentialLR{{taas::StepLR{}, one}, {3}}, "only its first schedule may have schedules itself");
  scheduled.refuse(taas::MultiplicativeLR{}, "lr_lambda has 0 values");
  scheduled.refuse(taas::CyclicLR{.base_lr = {0.1}, .max_lr = {}}, "CyclicLR: max_lr has 0 values");
  scheduled.refuse(taas::CyclicLR{.base_lr = {0.1}, .max_lr = {1}, .step_size_up = 0},
                   "step_size_up has to be positive");
  scheduled.refuse(taas::CyclicLR{.base_lr = {0.1}, .max_lr = {1}, .step_size_down = -1},
                   "step_size_down has to be 0 or above, and is -1");
}

TEST_CASE("a one-cycle schedule ends, and wants an optimizer with momentum") {
  Scheduled scheduled;
  taas::LRScheduler scheduler(scheduled.optimizer, taas::OneCycleLR{.max_lr = {0.5}, .total_steps = 2});
  scheduler.step();
  scheduler.step();
  CHECK_THROWS_WITH(scheduler.step(), ContainsSubstring("step 3 lies behind its total_steps, 2"));
  torch::optim::Adagrad other({at::ones({1})}, 0.1);
  CHECK_THROWS_WITH(taas::LRScheduler(other, taas::OneCycleLR{.max_lr = {0.5}, .total_steps = 2}),
                    ContainsSubstring("set cycle_momentum to false"));
}

TEST_CASE("a cyclic schedule goes up and down, with momentum the other way round") {
  Scheduled scheduled;
  taas::LRScheduler scheduler(scheduled.optimizer,
                              taas::CyclicLR{.base_lr = {0.5}, .max_lr = {1.5}, .step_size_up = 2});
  const auto momentum = [&] {
    return dynamic_cast<torch::optim::SGDOptions&>(scheduled.optimizer.param_groups()[0].options()).momentum();
  };
  for (const double height : {0.0, 0.5, 1.0, 0.5, 0.0, 0.5}) {
    CHECK(std::abs(scheduled.rate() - (0.5 + height)) < 1e-12);
    CHECK(std::abs(momentum() - (0.9 - 0.1 * height)) < 1e-12);
    scheduler.step();
  }
  torch::optim::Adagrad other({at::ones({1})}, 0.1);
  CHECK_THROWS_WITH(taas::LRScheduler(other, taas::CyclicLR{.base_lr = {0.5}, .max_lr = {1.5}}),
                    ContainsSubstring("CyclicLR: this optimizer has neither momentum nor beta1"));
  CHECK(other.param_groups()[0].options().get_lr() == 0.1);
}

TEST_CASE("the state of another schedule is refused") {
  Scheduled one, other;
  taas::LRScheduler steps(one.optimizer, taas::StepLR{});
  taas::LRScheduler restarts(other.optimizer, taas::CosineAnnealingWarmRestarts{.T_0 = 3});
  CHECK_THROWS_AS(restarts.load_state(steps.state()), taas::CheckpointError);
  CHECK_THROWS_AS(steps.load_state(c10::IValue()), taas::CheckpointError);
}

}  // namespace lr_scheduler_test
