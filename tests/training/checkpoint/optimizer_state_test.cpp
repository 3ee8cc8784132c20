#include <torch/nn/modules/linear.h>

#include "../spawn_ranks.hpp"
#include "catch.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"

namespace optimizer_state_test {

using taas::StateTensors;
using taas::test::problems;
using taas::test::spawn_ranks;

// That training goes on to the bit, here and in Python, is tested by checkpoint_test.cpp and checkpoint_reference.py.
namespace {

struct Trained {
  torch::nn::Linear model{3, 2};
  taas::Adam optimizer{model->parameters(), torch::optim::AdamOptions(0.1)};

  Trained() { step(optimizer); }
  void step(torch::optim::Optimizer& with) {
    with.step([&] {
      with.zero_grad();
      auto loss = model(at::ones({4, 3})).square().sum();
      loss.backward();
      return loss;
    });
  }
};

at::Tensor moment_in(const c10::IValue& state) {
  return state.toGenericDict().at("state").toGenericDict().at(0).toGenericDict().at("exp_avg").toTensor();
}

/// A program's own optimizer, which remembers more than Adam.
struct CountingAdam : torch::optim::Adam {
  using Adam::Adam;
  std::int64_t saved = 7;
  void save(torch::serialize::OutputArchive& archive) const override {
    Adam::save(archive);
    archive.write("saved", c10::IValue(saved));
  }
};

}  // namespace

TEST_CASE("A checkpoint is resumed by other numbers of ranks, to the bit") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "first_world", {.world_size = 2})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "second_world", {.world_size = 8})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "third_world", {.world_size = 4})) == "");
  spawn_ranks(TAAS_RANK_PROGRAM, "forget_worlds", {.world_size = 1});
}

TEST_CASE("A copied state stays as it is, and a shared one is the optimizer's own") {
  Trained trained;
  const auto copied = taas::optimizer_state(trained.optimizer);
  const auto shared = taas::optimizer_state(trained.optimizer, StateTensors::kShared);
  const auto before = moment_in(copied).clone();
  trained.step(trained.optimizer);
  CHECK(at::equal(moment_in(copied), before));
  CHECK_FALSE(at::equal(moment_in(shared), before));
}

TEST_CASE("A state that is given away is taken over, unless somebody else has it") {
  Trained trained, other;
  auto state = taas::optimizer_state(trained.optimizer);
  const auto* memory = moment_in(state).data_ptr();
  const auto memory_of = [](const Trained& of) {
    return moment_in(taas::optimizer_state(of.optimizer, StateTensors::kShared)).data_ptr();
  };
  taas::load_optimizer_state(other.optimizer, state);
  CHECK(memory_of(other) != memory);
  taas::load_optimizer_state(other.optimizer, std::move(state));
  CHECK(memory_of(other) == memory);
  taas::load_optimizer_state(other.optimizer, taas::optimizer_state(trained.optimizer, StateTensors::kShared));
  CHECK(memory_of(other) != memory_of(trained));
}

TEST_CASE("Optimizers of other kinds are saved and loaded as they do it themselves") {
  Trained trained, other;
  CountingAdam optimizer(trained.model->parameters()), resumed(other.model->parameters());
  trained.step(optimizer);
  taas::load_module_state(*other.model, taas::module_state(*trained.model));
  taas::load_optimizer_state(resumed, taas::optimizer_state(optimizer));
  trained.step(optimizer);
  other.step(resumed);
  CHECK(at::equal(trained.model->weight, other.model->weight));
}

TEST_CASE("A class derived from a known optimizer is not taken for it") {
  Trained trained;
  CountingAdam optimizer(trained.model->parameters());
  trained.step(optimizer);
  const auto state = taas::optimizer_state(optimizer, StateTensors::kShared);
  const auto own = dynamic_cast<torch::optim::AdamParamState&>(*optimizer.state().begin()->second).exp_avg();
  CHECK(moment_in(state).data_ptr() != own.data_ptr());
}

TEST_CASE("A shared state of a module is its tensors") {
  Trained trained;
  CHECK(taas::module_state(*trained.model, StateTensors::kShared).at("weight").data_ptr() ==
        trained.model->weight.data_ptr());
  CHECK(taas::module_state(*trained.model).at("weight").data_ptr() != trained.model->weight.data_ptr());
}

}  // namespace optimizer_state_test
