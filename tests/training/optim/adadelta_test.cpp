#include "taas/adadelta.hpp"

#include <torch/serialize.h>
#include <torch/types.h>

#include <sstream>

#include "catch.hpp"
#include "taas/error.hpp"

namespace adadelta_test {

// Equality with Python's Adadelta to the bit, also where parameters have no gradient, is tested by
// optimizer_reference.py.

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

TEST_CASE("options and state come back from an archive of libtorch's") {
  auto parameter = torch::ones({1}, torch::requires_grad());
  taas::Adadelta optimizer({parameter}, taas::AdadeltaOptions(0.5).rho(0.8)), other({parameter});
  (parameter * 4).sum().backward();
  optimizer.step();
  std::stringstream file;
  torch::save(optimizer, file);
  torch::load(other, file);
  const auto state_of = [](const auto& of) {
    return dynamic_cast<const taas::AdadeltaParamState&>(*of.state().begin()->second);
  };
  CHECK(dynamic_cast<const taas::AdadeltaOptions&>(other.param_groups()[0].options()).rho() == 0.8);
  CHECK(state_of(other).step() == 1);
  CHECK(at::equal(state_of(other).square_avg(), state_of(optimizer).square_avg()));
}

TEST_CASE("wrong options are refused by name") {
  auto parameter = torch::ones({1}, torch::requires_grad());
  CHECK_THROWS_AS(taas::Adadelta({parameter}, taas::AdadeltaOptions(-1)), taas::InvalidArgument);
  CHECK_THROWS_WITH(taas::Adadelta({parameter}, taas::AdadeltaOptions().rho(1.5)), ContainsSubstring("rho 1.5"));
}

}  // namespace adadelta_test
