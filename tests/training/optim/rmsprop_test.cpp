#include <torch/types.h>

#include <cmath>

#include "catch.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "taas/optimizers.hpp"

namespace rmsprop_test {

// Equality with Python's RMSprop to the bit, in 32 and 16 bits, is tested by optimizer_reference.py.

using torch::optim::RMSpropOptions;

namespace {

/// One step whose gradient is 2.
void step(const at::Tensor& parameter, torch::optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  (parameter * 2).sum().backward();
  optimizer.step();
}

}  // namespace

TEST_CASE("the first step of RMSprop is the formula's") {
  auto parameter = torch::full({1}, 2.0, torch::requires_grad());
  taas::RMSprop optimizer({parameter}, RMSpropOptions(0.1).alpha(0.9).eps(0.5));
  step(parameter, optimizer);
  CHECK(std::abs(parameter.item<double>() - (2.0 - 0.1 * 2 / (std::sqrt(0.1 * 4) + 0.5))) < 1e-6);
}

TEST_CASE("momentum that a schedule begins later begins with nothing") {
  auto late = torch::ones({1}, torch::requires_grad()), never = torch::ones({1}, torch::requires_grad());
  taas::RMSprop first({late}, RMSpropOptions(0.1)), second({never}, RMSpropOptions(0.1));
  for (int number = 0; number < 3; ++number) {
    step(late, first);
    step(never, second);
    CHECK(at::equal(late, never) == (number < 2));  // the second step's buffer holds that step alone
    dynamic_cast<RMSpropOptions&>(first.param_groups()[0].options()).momentum(0.9);
  }
}

TEST_CASE("RMSprop goes on from the state of libtorch's") {
  auto parameter = torch::ones({1}, torch::requires_grad());
  torch::optim::RMSprop theirs({parameter}, RMSpropOptions(0.1).momentum(0.5));
  step(parameter, theirs);
  auto other = parameter.detach().clone().requires_grad_();
  taas::RMSprop ours({other}, RMSpropOptions(0.7));
  taas::load_optimizer_state(ours, taas::optimizer_state(theirs));
  step(parameter, theirs);
  step(other, ours);
  CHECK(at::allclose(parameter, other));
}

TEST_CASE("a fused RMSprop is refused: there is no kernel") {
  auto parameter = torch::ones({1}, torch::requires_grad());
  CHECK_THROWS_AS(taas::RMSprop({parameter}, RMSpropOptions(0.1), {.fused = true}), taas::InvalidArgument);
}

}  // namespace rmsprop_test
