#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <tuple>

#include "peer_tasks.hpp"
#include "taas/checkpoint.hpp"
#include "taas/lr_scheduler.hpp"

namespace taas::test {
namespace {

constexpr int kSteps = 200;
constexpr int kSaved = 77;  // steps before a state is taken

/// Schedules that schedule_reference.py makes too.
std::map<std::string, LRSchedule> schedules_by_name() {
  const LinearLR warm_up{.start_factor = 0.01, .total_iters = 30};
  const StepLR steps{.step_size = 9, .gamma = 0.8};
  const CosineAnnealingLR waves{.T_max = 13, .eta_min = 0.002};
  const OneCycleLR cycle{.max_lr = {0.5}, .total_steps = 160};
  return {{"step", StepLR{.step_size = 30, .gamma = 0.3}},
          {"linear", LinearLR{.start_factor = 0.2, .end_factor = 0.7, .total_iters = 90}},
          {"linear defaults", LinearLR{}},
          {"cosine", CosineAnnealingLR{.T_max = 60, .eta_min = 0.001}},
          {"cosine to zero", CosineAnnealingLR{.T_max = 200}},
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
          {"warm-up then cosine", SequentialLR{{warm_up, CosineAnnealingLR{.T_max = 170, .eta_min = 0.0001}}, {30}}},
          {"all in turn", SequentialLR{{waves, steps, warm_up, waves, cycle}, {20, 45, 70, 110}}},
          {"one cycle first", SequentialLR{{cycle, waves, steps}, {50, 120}}},
          {"one never", SequentialLR{{warm_up, waves, steps}, {0, 60}}}};
}

/// Two groups with rates of their own.
std::unique_ptr<torch::optim::Optimizer> two_groups(bool adam) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (int group = 0; group < 2; ++group) groups.emplace_back(std::vector<at::Tensor>{at::ones({1})});
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (adam) {
    optimizer = std::make_unique<torch::optim::Adam>(groups, torch::optim::AdamOptions(0.1));
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(groups, torch::optim::SGDOptions(0.1).momentum(0.9));
  }
  optimizer->param_groups()[1].options().set_lr(0.025);
  return optimizer;
}

double momentum_of(const torch::optim::OptimizerOptions& options) {
  if (const auto* adam = dynamic_cast<const torch::optim::AdamOptions*>(&options)) return std::get<0>(adam->betas());
  return dynamic_cast<const torch::optim::SGDOptions&>(options).momentum();
}

/// An optimizer and its schedule.
struct Followed {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  LRScheduler scheduler;

  Followed(const LRSchedule& schedule, bool adam) : optimizer(two_groups(adam)), scheduler(*optimizer, schedule) {}

  void load(const c10::IValue& of_optimizer, const c10::IValue& of_scheduler) {
    load_optimizer_state(*optimizer, of_optimizer);
    for (auto& group : optimizer->param_groups()) group.options().set_lr(0);  // rates are in the other state, too
    scheduler.load_state(of_scheduler);
  }
  /// What each of the next steps uses: the rates and the momentum of both groups.
  at::Tensor next(int steps) {
    std::vector<double> seen;
    for (; steps > 0; --steps) {
      for (const auto& group : optimizer->param_groups()) {
        seen.push_back(group.options().get_lr());
        seen.push_back(momentum_of(group.options()));
      }
      scheduler.step();
    }
    return torch::tensor(seen, at::kDouble).view({-1, 4});
  }
};

/// All steps; the last ones once more from the states in their middle, and from those that Python has there. The
/// optimizers and schedulers that take a state are new.
void follow_schedules(const std::vector<std::string>& arguments) {
  const auto of_python = load_checkpoint(arguments.at(0)).extra;
  Checkpoint checkpoint;
  for (const auto& [name, schedule] : schedules_by_name()) {
    for (const bool adam : {false, true}) {
      const auto key = name + (adam ? ", Adam" : ", SGD");
      Followed whole(schedule, adam), from_own(schedule, adam), from_python(schedule, adam);
      const auto first = whole.next(kSaved);
      from_own.load(optimizer_state(*whole.optimizer), whole.scheduler.state());
      const auto states = of_python.at(key).toListRef();
      from_python.load(states[0], states[1]);
      checkpoint.model[key] = at::cat({first, whole.next(kSteps - kSaved)});
      checkpoint.model[key + " from its own state"] = from_own.next(kSteps - kSaved);
      checkpoint.model[key + " from Python's state"] = from_python.next(kSteps - kSaved);
    }
  }
  save_checkpoint(arguments.at(1), checkpoint);
}

}  // namespace

PeerTasks schedule_peer_tasks() { return {{"schedules", {"FROM TO", follow_schedules}}}; }

}  // namespace taas::test
