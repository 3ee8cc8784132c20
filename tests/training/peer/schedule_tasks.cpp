#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/lr_scheduler.hpp"
#include "taas/optimizers.hpp"

namespace taas::test {
namespace {

constexpr int kSteps = 200;
constexpr int kSaved = 77;  // after so many steps a state is taken

double up_and_down(std::int64_t step) { return step % 3 ? 0.95 : 1.05; }

const LinearLR kWarmUp{.start_factor = 0.01, .total_iters = 30};
const MultiplicativeLR kUpAndDown{{up_and_down}};
const CosineAnnealingWarmRestarts kRestarts{.T_0 = 11, .T_mult = 2};
const CyclicLR kCyclic{.base_lr = {0.02, 0.01},
                       .max_lr = {0.3},
                       .step_size_up = 9,
                       .step_size_down = 4,
                       .mode = CyclicMode::kTriangular2,
                       .base_momentum = {0.7, 0.6},
                       .max_momentum = {0.93}};

/// Schedules that schedule_reference.py makes too: the cyclic ones, and those within others.
std::map<std::string, LRSchedule> cyclic_and_nested_schedules() {
  const ExponentialLR slow{.gamma = 0.98};
  return {
      {"multiplicative", kUpAndDown},
      {"multiplicatives", MultiplicativeLR{{[](std::int64_t) { return 0.97; },
                                            [](std::int64_t step) {
                                              return static_cast<double>(1 + step) / static_cast<double>(2 + step);
                                            }}}},
      {"cyclic", CyclicLR{.base_lr = {0.01}, .max_lr = {0.3, 0.2}, .step_size_up = 13}},
      {"cyclic of half the height", kCyclic},
      {"cyclic exponential",
       CyclicLR{.base_lr = {0.003}, .max_lr = {0.1}, .step_size_up = 7, .mode = CyclicMode::kExpRange, .gamma = 0.987}},
      {"cyclic scaled by cycles",
       CyclicLR{.base_lr = {0.01},
                .max_lr = {0.2},
                .step_size_up = 17,
                .step_size_down = 30,
                .scale_fn = [](std::int64_t cycle) { return 1.0 / static_cast<double>(1 + cycle); }}},
      {"cyclic scaled by steps",
       CyclicLR{.base_lr = {0.01},
                .max_lr = {0.2},
                .step_size_up = 17,
                .step_size_down = 0,
                .scale_fn = [](std::int64_t step) { return static_cast<double>(step % 5) / 7; },
                .scale_mode = CyclicScale::kIterations,
                .cycle_momentum = false}},
      {"cyclic in turn", SequentialLR{{kWarmUp, kCyclic, kUpAndDown}, {40, 90}}},
      {"cyclic first", SequentialLR{{kCyclic, slow}, {50}}},
      {"sequence in a sequence",
       SequentialLR{{SequentialLR{{kWarmUp, kCyclic, CosineAnnealingLR{.T_max = 30}}, {1, 20}}, StepLR{.step_size = 30},
                     kRestarts},
                    {60, 130}}},
      {"three sequences",
       SequentialLR{{SequentialLR{{SequentialLR{{kRestarts, kCyclic}, {40}}, PolynomialLR{.total_iters = 70}}, {90}},
                     kUpAndDown},
                    {150}}},
      {"chain in a sequence", SequentialLR{{ChainedScheduler{{kWarmUp, slow, kRestarts}}, kCyclic}, {50}}},
      {"sequences in a chain", ChainedScheduler{{ExponentialLR{.gamma = 0.99},
                                                 SequentialLR{{kWarmUp, StepLR{.step_size = 40, .gamma = 0.5}}, {25}},
                                                 SequentialLR{{MultiStepLR{{20, 40}}, kUpAndDown}, {70}}}}},
      {"chain in a chain", ChainedScheduler{{ChainedScheduler{{kWarmUp, kUpAndDown}}, slow}}}};
}

/// The others.
std::map<std::string, LRSchedule> plain_schedules() {
  return {{"lambda", LambdaLR{{[](std::int64_t step) { return std::pow(0.95, static_cast<double>(step)); }}}},
          {"lambdas", LambdaLR{{[](std::int64_t step) { return 1.0 / static_cast<double>(1 + step); },
                                [](std::int64_t step) { return static_cast<double>(step % 7) / 7; }}}},
          {"step", StepLR{.step_size = 30, .gamma = 0.3}},
          {"multi step", MultiStepLR{{20, 50, 50, 120}, 0.3}},
          {"constant", ConstantLR{.factor = 0.3, .total_iters = 40}},
          {"linear", LinearLR{.start_factor = 0.2, .end_factor = 0.7, .total_iters = 90}},
          {"linear defaults", LinearLR{}},
          {"exponential", ExponentialLR{.gamma = 0.97}},
          {"polynomial", PolynomialLR{.total_iters = 150, .power = 1.7}},
          {"cosine", CosineAnnealingLR{.T_max = 60, .eta_min = 0.001}},
          {"cosine to zero", CosineAnnealingLR{.T_max = 200}},
          {"restarts", CosineAnnealingWarmRestarts{.T_0 = 13, .T_mult = 2, .eta_min = 0.0003}},
          {"equal restarts", CosineAnnealingWarmRestarts{.T_0 = 17}},
          {"one cycle", OneCycleLR{.max_lr = {0.3}, .total_steps = 200}},
          {"one cycle linear", OneCycleLR{.max_lr = {0.3, 0.2},
                                          .total_steps = 210,
                                          .pct_start = 0.41,
                                          .anneal_strategy = Anneal::kLinear,
                                          .base_momentum = 0.8,
                                          .max_momentum = 0.9,
                                          .div_factor = 7,
                                          .final_div_factor = 90,
                                          .three_phase = true}},
          {"one cycle without momentum", OneCycleLR{.max_lr = {0.3}, .total_steps = 201, .cycle_momentum = false}},
          {"warm-up then cosine", SequentialLR{{kWarmUp, CosineAnnealingLR{.T_max = 170, .eta_min = 0.0001}}, {30}}},
          {"three in turn",
           SequentialLR{{ConstantLR{.factor = 0.1, .total_iters = 300}, PolynomialLR{.total_iters = 80, .power = 0.9},
                         CosineAnnealingWarmRestarts{.T_0 = 11}},
                        {20, 110}}},
          {"the others in turn",
           SequentialLR{{ExponentialLR{.gamma = 0.9}, StepLR{.step_size = 9}, MultiStepLR{{5, 9}, 0.5},
                         LinearLR{.start_factor = 0.3, .end_factor = 0.9, .total_iters = 20},
                         LambdaLR{{[](std::int64_t step) { return 1.0 / static_cast<double>(2 + step); }}},
                         ConstantLR{.factor = 0.2, .total_iters = 8}},
                        {10, 40, 70, 110, 150}}},
          {"one cycle in turn",
           SequentialLR{{ExponentialLR{.gamma = 0.99}, OneCycleLR{.max_lr = {0.5}, .total_steps = 160}}, {50}}},
          {"chained", ChainedScheduler{{kWarmUp, ExponentialLR{.gamma = 0.98}, StepLR{.step_size = 60}}}}};
}

std::map<std::string, LRSchedule> schedules_by_name() {
  auto all = plain_schedules();
  all.merge(cyclic_and_nested_schedules());
  return all;
}

/// Two groups with rates of their own.
std::unique_ptr<torch::optim::Optimizer> two_groups(bool adam) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (int group = 0; group < 2; ++group) groups.emplace_back(std::vector<at::Tensor>{at::ones({1})});
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (adam) {
    optimizer = std::make_unique<Adam>(groups, torch::optim::AdamOptions(0.1));
  } else {
    optimizer = std::make_unique<SGD>(groups, torch::optim::SGDOptions(0.1).momentum(0.9));
  }
  optimizer->param_groups()[1].options().set_lr(0.025);
  return optimizer;
}

double momentum_of(const torch::optim::OptimizerOptions& options) {
  if (const auto* adam = dynamic_cast<const torch::optim::AdamOptions*>(&options)) return std::get<0>(adam->betas());
  return dynamic_cast<const torch::optim::SGDOptions&>(options).momentum();
}

/// What a step would use: the rates and the momentum of both groups.
void note(const torch::optim::Optimizer& optimizer, std::vector<double>& seen) {
  for (const auto& group : optimizer.param_groups()) {
    seen.push_back(group.options().get_lr());
    seen.push_back(momentum_of(group.options()));
  }
}

at::Tensor as_table(const std::vector<double>& seen) { return torch::tensor(seen, at::kDouble).view({-1, 4}); }

/// All steps; the last ones once more from a state, with an optimizer and a scheduler that are new.
at::Tensor followed(const LRSchedule& schedule, bool adam) {
  auto optimizer = two_groups(adam);
  LRScheduler scheduler(*optimizer, schedule);
  c10::IValue saved, saved_optimizer;
  std::vector<double> seen, again;
  for (int step = 0; step < kSteps; ++step) {
    note(*optimizer, seen);
    scheduler.step();
    if (step != kSaved) continue;
    saved = scheduler.state();
    saved_optimizer = optimizer_state(*optimizer);
  }
  auto other = two_groups(adam);
  LRScheduler resumed(*other, schedule);
  load_optimizer_state(*other, saved_optimizer);  // momentum that nothing changes any more
  for (auto& group : other->param_groups()) group.options().set_lr(0);
  resumed.load_state(saved);
  if (resumed.last_lr().at(1) != seen.at((kSaved + 1) * 4 + 2)) throw std::logic_error("the state has other rates");
  for (int step = kSaved + 1; step < kSteps; ++step) {
    if (step > kSaved + 1) note(*other, again);
    resumed.step();
  }
  if (!std::equal(again.begin(), again.end(), seen.begin() + (kSaved + 2) * 4))
    throw std::logic_error("a schedule goes on with other rates after its state was loaded");
  return as_table(seen);
}

void follow_schedules(const std::vector<std::string>& arguments) {
  Checkpoint checkpoint;
  for (const auto& [name, schedule] : schedules_by_name()) {
    checkpoint.model[name + ", SGD"] = followed(schedule, false);
    checkpoint.model[name + ", Adam"] = followed(schedule, true);
  }
  save_checkpoint(arguments.at(0), checkpoint);
}

/// Goes on from the states of Python's schedulers, with SGD, for ten steps each.
void adopt_schedules(const std::vector<std::string>& arguments) {
  const auto schedules = schedules_by_name();
  Checkpoint checkpoint;
  for (const auto& [name, state] : load_checkpoint(arguments.at(0)).extra) {
    auto optimizer = two_groups(false);
    LRScheduler scheduler(*optimizer, schedules.at(name));
    scheduler.load_state(state);
    std::vector<double> seen;
    for (int step = 0; step < 10; ++step) {
      scheduler.step();
      note(*optimizer, seen);
    }
    checkpoint.model[name] = as_table(seen);
  }
  save_checkpoint(arguments.at(1), checkpoint);
}

}  // namespace

PeerTasks schedule_peer_tasks() {
  return {{"schedules", {"PATH", follow_schedules}}, {"adopt-schedules", {"FROM TO", adopt_schedules}}};
}

}  // namespace taas::test
