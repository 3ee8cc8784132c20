#include "taas/amp.hpp"

#include <ATen/Functions.h>
#include <torch/optim/sgd.h>

#include "../spawn_ranks.hpp"
#include "catch.hpp"
#include "taas/error.hpp"

namespace amp_test {

using taas::test::problems;
using taas::test::spawn_ranks;

// Equality with Python to the bit is tested by grad_scaler_reference.py.
namespace {

at::ScalarType type_of_product() { return at::matmul(at::ones({2, 2}), at::ones({2, 2})).scalar_type(); }

struct Scaled {
  at::Tensor parameter = at::ones({2}).requires_grad_();
  torch::optim::SGD optimizer{{parameter}, 0.5};
  taas::GradScaler scaler{{.init_scale = 4}};

  void backward() { scaler.scale(parameter.sum()).backward(); }
};

}  // namespace

TEST_CASE("Autocast holds for its scope, and within another one, and refuses other types") {
  {
    const taas::Autocast outer(at::kCPU);
    CHECK(type_of_product() == at::kBFloat16);
    {
      const taas::Autocast inner(at::kCPU, {.enabled = false});
      CHECK(type_of_product() == at::kFloat);
      const taas::Autocast innermost(at::kCPU, {.dtype = at::kHalf});
      CHECK(type_of_product() == at::kHalf);
    }
    CHECK(type_of_product() == at::kBFloat16);
  }
  CHECK_THROWS_WITH(taas::Autocast(at::kCPU, {.dtype = at::kDouble}), ContainsSubstring("not in Double"));
  CHECK(type_of_product() == at::kFloat);
}

TEST_CASE("Calls of a GradScaler in another order are refused, and the scale can be set") {
  Scaled scaled;
  CHECK_THROWS_WITH(scaled.scaler.step(scaled.optimizer), ContainsSubstring("before scale(loss)"));
  scaled.backward();
  CHECK_THROWS_WITH(scaled.scaler.update(), ContainsSubstring("without a step()"));
  scaled.scaler.unscale_(scaled.optimizer);
  CHECK_THROWS_WITH(scaled.scaler.unscale_(scaled.optimizer), ContainsSubstring("since the last update()"));
  scaled.scaler.step(scaled.optimizer);
  CHECK_THROWS_WITH(scaled.scaler.step(scaled.optimizer), ContainsSubstring("since the last update()"));
  CHECK_THROWS_WITH(scaled.scaler.unscale_(scaled.optimizer), ContainsSubstring("after step()"));
  scaled.scaler.update();
  scaled.scaler.step(scaled.optimizer);
  scaled.scaler.update(32.0);
  CHECK(scaled.scaler.get_scale() == 32);
}

TEST_CASE("A GradScaler that is not enabled leaves the loss as it is and makes every step") {
  Scaled scaled;
  scaled.scaler = taas::GradScaler({.enabled = false});
  scaled.backward();
  CHECK(at::equal(scaled.parameter.grad(), at::ones({2})));
  CHECK(scaled.scaler.step(scaled.optimizer));
  scaled.scaler.update();
  CHECK(scaled.scaler.get_scale() == 1);
  CHECK(scaled.scaler.state().toGenericDict().empty());
}

TEST_CASE("Half gradients, wrong factors and foreign states are refused") {
  auto parameter = at::ones({2}, at::kHalf).requires_grad_();
  torch::optim::SGD optimizer({parameter}, 0.5);
  taas::GradScaler scaler;
  scaler.scale(parameter.sum()).backward();
  CHECK_THROWS_WITH(scaler.step(optimizer), ContainsSubstring("in float16"));
  CHECK_THROWS_WITH(taas::GradScaler({.growth_factor = 1}), ContainsSubstring("growth_factor"));
  CHECK_THROWS_WITH(taas::GradScaler({.backoff_factor = 1}), ContainsSubstring("backoff_factor"));
  CHECK_THROWS_AS(scaler.load_state(c10::IValue(3)), taas::CheckpointError);
}

TEST_CASE("Mixed precision over several ranks: the scale grows, and an infinite gradient on one rank stops all") {
  for (int ranks : {2, 3}) {
    INFO(ranks << " ranks");
    CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "scaled_training", {.world_size = ranks})) == "");
  }
}

}  // namespace amp_test
