// A graph for the CPU stands in for CUDA's. The host's work is done once, while it records, as with CUDA's; since the
// CPU cannot but do the tensors' work too, that counts as the first replay, and later ones do the tensors' work again,
// in which the optimizers change nothing on the host. So a counter, a rate or a pointer that a replay would miss makes
// parameters that differ.
#include "taas/graphed_step.hpp"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <map>
#include <string>
#include <utility>

#include "catch.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"
#include "training/backend/step_graph.hpp"
#include "training/spawn_ranks.hpp"

namespace graphed_step_test {

using namespace taas;
using Tensors = std::vector<at::Tensor>;

struct CpuGraph : taas::detail::StepGraph {
  explicit CpuGraph(int& counter) : recordings(counter) {}
  void record(const std::function<void()>& work) override {
    ++recordings;
    recorded = work;
    work();
    done = true;
  }
  void replay() override {
    if (!std::exchange(done, false)) recorded();
  }
  int& recordings;
  std::function<void()> recorded;
  bool done = false;
};

struct Any {
  std::unique_ptr<torch::optim::Optimizer> owner;
  RecordableOptimizer* recordable = nullptr;
};

template <class Optimizer, class Options>
Any make(const Tensors& parameters, const Options& options, const OptimizerKernels& kernels) {
  auto made = std::make_unique<Optimizer>(parameters, options, kernels);
  auto* recordable = made.get();
  return {std::move(made), recordable};
}

using Maker = std::function<Any(const Tensors& parameters, const OptimizerKernels& kernels)>;

const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> kMakers{
      {"SGD", [](const auto& p, const auto& k) { return make<SGD>(p, torch::optim::SGDOptions(0.05), k); }},
      {"SGD momentum",
       [](const auto& p, const auto& k) {
         return make<SGD>(p, torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.01), k);
       }},
      {"Adam", [](const auto& p, const auto& k) { return make<Adam>(p, torch::optim::AdamOptions(0.05), k); }},
      {"Adam amsgrad",
       [](const auto& p, const auto& k) {
         return make<Adam>(p, torch::optim::AdamOptions(0.05).amsgrad(true).weight_decay(0.1), k);
       }},
      {"AdamW", [](const auto& p,
                   const auto& k) { return make<AdamW>(p, torch::optim::AdamWOptions(0.05).weight_decay(0.1), k); }},
      {"RMSprop", [](const auto& p,
                     const auto& k) { return make<RMSprop>(p, torch::optim::RMSpropOptions(0.05).centered(true), k); }},
      {"RMSprop momentum",
       [](const auto& p, const auto& k) {
         return make<RMSprop>(p, torch::optim::RMSpropOptions(0.05).momentum(0.5).eps(1e-2), k);
       }},
      {"Adadelta", [](const auto& p, const auto& k) { return make<Adadelta>(p, AdadeltaOptions(0.9), k); }},
  };
  return kMakers;
}

/// A model, its optimizer and a step over them.
struct Training {
  Training(const Maker& maker, const OptimizerKernels& kernels) {
    torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) {
      parameter.copy_(at::linspace(-1, 1, parameter.numel()).view_as(parameter));
    }
    optimizer = maker(model->parameters(), kernels);
  }
  at::Tensor step(const Tensors& inputs) {
    optimizer.owner->zero_grad();
    auto loss = (model->forward(inputs[0]).tanh() - inputs[1]).square().mean();
    loss.backward();
    optimizer.owner->step();
    return loss;
  }
  /// A step for GraphedStep.
  GraphedStep::Step function() {
    return [this](const Tensors& inputs) { return step(inputs); };
  }

  torch::nn::Sequential model{torch::nn::Linear(3, 4), torch::nn::Linear(4, 2)};
  Any optimizer;
};

Tensors batch(int number) {
  const std::int64_t size = number % 5 == 4 ? 3 : 6;  // the last one of an epoch is smaller
  return {at::linspace(-1, 2 + number, size * 3).view({size, 3}), at::linspace(1, -1, size * 2).view({size, 2})};
}

void set_rate(Training& training, int number) {
  if (number % 4 == 3) training.optimizer.owner->param_groups()[0].options().set_lr(0.03 + 0.01 * number);
}

bool same_parameters(const Training& one, const Training& other) {
  const auto mine = one.model->parameters(), others = other.model->parameters();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (!at::equal(mine[i], others[i])) return false;
  }
  return at::isfinite(mine[0]).all().item<bool>();
}

bool close_parameters(const Training& one, const Training& other) {
  const auto mine = one.model->parameters(), others = other.model->parameters();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    if (!at::allclose(mine[i], others[i], 1e-2, 1e-3)) return false;
  }
  return true;
}

std::int64_t steps_of(const Training& training) {
  auto state = optimizer_state(*training.optimizer.owner).toGenericDict().at("state").toGenericDict();
  auto fields = state.at(0).toGenericDict();
  return fields.contains("step") ? fields.at("step").toInt() : -1;
}

constexpr int kSteps = 17;
constexpr GraphedStepOptions kShort{.warmup = 2};

TEST_CASE("replayed steps are the plain ones to the bit, with changing rates and a smaller batch between them") {
  for (const auto& [name, maker] : makers()) {
    for (bool fused : {false, true}) {
      if (fused && (name == "Adadelta" || name.starts_with("RMSprop"))) continue;  // torch has no kernel for them
      INFO(name << (fused ? " fused" : ""));
      Training plain(maker, {.fused = fused, .capturable = true}), graphed(maker, {.fused = fused, .capturable = true});
      int recordings = 0;
      GraphedStep step(std::make_unique<CpuGraph>(recordings), graphed.function(), {graphed.optimizer.recordable},
                       kShort);
      int replays = 0;
      for (int number = 0; number < kSteps; ++number) {
        set_rate(plain, number);
        set_rate(graphed, number);
        auto wanted = plain.step(batch(number));
        REQUIRE(at::equal(step(batch(number)), wanted));
        replays += step.replayed();
      }
      CHECK(recordings == 1);
      CHECK(replays == kSteps - 2 - kSteps / 5);
      CHECK(same_parameters(graphed, plain));
      CHECK(steps_of(graphed) == steps_of(plain));
    }
  }
}

TEST_CASE("a training that begins with the last, smaller batch records the ones that follow") {
  const auto& maker = makers().at("AdamW");
  Training plain(maker, {.capturable = true}), graphed(maker, {.capturable = true});
  int recordings = 0;
  GraphedStep step(std::make_unique<CpuGraph>(recordings), graphed.function(), {graphed.optimizer.recordable}, kShort);
  for (int number : {4, 0, 1, 2, 3}) {
    plain.step(batch(number));
    step(batch(number));
    CHECK(step.replayed() == (number >= 2 && number != 4));
  }
  CHECK(same_parameters(graphed, plain));
}

TEST_CASE("a capturable optimizer does what the other one does, but for rounding") {
  for (const auto& [name, maker] : makers()) {
    INFO(name);
    Training plain(maker, {}), capturable(maker, {.capturable = true});
    for (int number = 0; number < kSteps; ++number) {
      set_rate(plain, number);
      set_rate(capturable, number);
      plain.step(batch(number));
      capturable.step(batch(number));
    }
    CHECK(close_parameters(capturable, plain));
    CHECK(steps_of(capturable) == steps_of(plain));
  }
}

TEST_CASE("a fused kernel takes parameters of several types") {
  auto single = at::ones({2}).requires_grad_(), twice = at::ones({2}, at::kDouble).requires_grad_();
  auto alone = at::ones({2}, at::kDouble).requires_grad_();
  Adam both({single, twice}, {}, {.fused = true}), one({alone}, {}, {.fused = true});
  (single.sum() * 2 + twice.sum() * 3).backward();
  (alone.sum() * 3).backward();
  both.step();
  one.step();
  CHECK(at::equal(twice, alone));
  CHECK_FALSE(at::equal(single, at::ones({2})));
}

TEST_CASE("a loaded state is recorded anew") {
  for (const auto& [name, maker] : makers()) {
    INFO(name);
    Training plain(maker, {.capturable = true}), graphed(maker, {.capturable = true});
    int recordings = 0;
    GraphedStep step(std::make_unique<CpuGraph>(recordings), graphed.function(), {graphed.optimizer.recordable},
                     kShort);
    c10::IValue saved;
    for (int number = 0; number < 12; ++number) {
      if (number == 4) saved = optimizer_state(*plain.optimizer.owner);
      if (number == 8) {
        load_optimizer_state(*plain.optimizer.owner, saved);
        load_optimizer_state(*graphed.optimizer.owner, saved);
      }
      plain.step(batch(0));
      step(batch(0));
    }
    CHECK(same_parameters(graphed, plain));
    CHECK(recordings == (name == "SGD" ? 1 : 2));  // which remembers nothing
  }
}

TEST_CASE("without a graph a step is the plain one, on one rank and on two") {
  const auto& maker = makers().at("Adam");
  Training plain(maker, {}), other(maker, {});
  GraphedStep step(init(), other.function(), {other.optimizer.recordable});
  CHECK_FALSE(step.uses_graph());
  for (int number = 0; number < kSteps; ++number) {
    plain.step(batch(number));
    step(batch(number));
  }
  CHECK(same_parameters(other, plain));
  CHECK(test::problems(test::spawn_ranks(TAAS_RANK_PROGRAM, "graphed_step", {.world_size = 2})) == "");
}

TEST_CASE("what a recorded step cannot do is refused in one line") {
  const auto& maker = makers().at("Adam");
  int recordings = 0;
  auto graph = [&] { return std::make_unique<CpuGraph>(recordings); };
  Training wrong(maker, {});
  CHECK_THROWS_WITH(GraphedStep(graph(), wrong.function(), {wrong.optimizer.recordable}),
                    ContainsSubstring(".capturable"));

  Training training(maker, {.capturable = true});
  CHECK_THROWS_WITH(GraphedStep(graph(), training.function(), {}, {.warmup = 0}), ContainsSubstring("not 0"));

  GraphedStep strict(graph(), training.function(), {training.optimizer.recordable},
                     {.warmup = 1, .eager_for_others = false});
  strict(batch(0));
  CHECK_THROWS_WITH(strict(batch(4)), ContainsSubstring("recorded for [6, 3] Float, [6, 2] Float, not [3, 3] Float"));

  GraphedStep hidden(graph(), wrong.function(), {}, {.warmup = 1});  // an optimizer that was not named
  hidden(batch(0));
  CHECK_THROWS_WITH(hidden(batch(0)), ContainsSubstring("taas::Adam cannot be recorded"));
}

TEST_CASE("a parameter whose first gradient comes in the recorded step is refused") {
  auto early = at::ones({2}).requires_grad_(), late = at::ones({2}).requires_grad_();
  Adam optimizer({early, late}, {}, {.capturable = true});
  int calls = 0, recordings = 0;
  GraphedStep step(std::make_unique<CpuGraph>(recordings),
                   [&](const Tensors& inputs) {
                     auto loss = (++calls > 1 ? early * late : early).mul(inputs[0]).sum();
                     loss.backward();
                     optimizer.step();
                     return loss;
                   },
                   {&optimizer}, {.warmup = 1});
  step({at::ones({2})});
  CHECK_THROWS_WITH(step({at::ones({2})}), ContainsSubstring("more warm-up steps"));
}

TEST_CASE("what CUDA refuses to record is told with its reason") {
  struct Refuses : taas::detail::StepGraph {
    void record(const std::function<void()>&) override {
      TORCH_CHECK(false, "operation not permitted when stream is capturing");
    }
    void replay() override {}
  };
  GraphedStep step(std::make_unique<Refuses>(), [](const Tensors& inputs) { return inputs[0].sum(); }, {},
                   {.warmup = 1});
  step({at::ones({2})});
  CHECK_THROWS_WITH(step({at::ones({2})}),
                    ContainsSubstring("cannot be recorded: operation not permitted") && !ContainsSubstring("\n"));
}

TEST_CASE("on the CPU there is no stream to own") {
  const c10::Device cpu(c10::DeviceType::CPU);
  CHECK_NOTHROW(OwnStream(cpu));
}

}  // namespace graphed_step_test
