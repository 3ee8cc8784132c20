#include "taas/adadelta.hpp"

#include <torch/types.h>

#include <cmath>

#include "catch.hpp"
#include "taas/error.hpp"

namespace adadelta_test {

// Equality with Python's Adadelta to the bit, over several steps, is tested by checkpoint_reference.py.

TEST_CASE("the first step of Adadelta is the formula's") {
  auto parameter = torch::full({1}, 2.0, torch::requires_grad());
  taas::Adadelta optimizer({parameter}, taas::AdadeltaOptions(1.0));
  (3 * parameter).sum().backward();
  optimizer.step();
  // v = 0.1 * 3^2; step = sqrt(1e-6) / sqrt(v + 1e-6) * 3
  auto expected = 2.0 - std::sqrt(1e-6) / std::sqrt(0.9 + 1e-6) * 3;
  CHECK(std::abs(parameter.item<double>() - expected) < 1e-6);
}

TEST_CASE("parameters without a gradient stay as they are") {
  auto used = torch::ones({2}, torch::requires_grad()), unused = torch::ones({2}, torch::requires_grad());
  taas::Adadelta optimizer({used, unused});
  used.sum().backward();
  optimizer.step();
  CHECK(at::equal(unused, torch::ones({2})));
  CHECK_FALSE(at::equal(used, torch::ones({2})));
  CHECK(optimizer.state().size() == 1);
}

TEST_CASE("a closure is evaluated with gradients and its loss comes back") {
  auto parameter = torch::ones({1}, torch::requires_grad());
  taas::Adadelta optimizer({parameter});
  auto loss = optimizer.step([&] {
    auto value = (parameter * 4).sum();
    value.backward();
    return value;
  });
  CHECK(loss.item<double>() == 4);
  CHECK(parameter.item<double>() < 1);
}

TEST_CASE("wrong options are refused by name") {
  auto parameter = torch::ones({1}, torch::requires_grad());
  CHECK_THROWS_AS(taas::Adadelta({parameter}, taas::AdadeltaOptions(-1)), taas::InvalidArgument);
  CHECK_THROWS_WITH(taas::Adadelta({parameter}, taas::AdadeltaOptions().rho(1.5)), ContainsSubstring("rho 1.5"));
}

}  // namespace adadelta_test
