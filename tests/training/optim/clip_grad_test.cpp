#include "taas/clip_grad.hpp"

#include <ATen/Functions.h>

#include <cmath>

#include "catch.hpp"
#include "taas/error.hpp"

namespace clip_grad_test {

// Equality with Python to the bit is tested by clip_grad_reference.py.

TEST_CASE("A norm that is not finite is an error only where that is asked for") {
  auto parameter = at::ones({2});
  parameter.mutable_grad() = at::full({2}, INFINITY);
  CHECK_THROWS_WITH(taas::clip_grad_norm_({parameter}, 1.0, {.error_if_nonfinite = true}),
                    ContainsSubstring("is inf, so that they cannot be clipped"));
  CHECK(at::isinf(parameter.grad()).all().item<bool>());
  taas::clip_grad_norm_({parameter}, 1.0);
  CHECK(at::isnan(parameter.grad()).all().item<bool>());
}

TEST_CASE("Without gradients the norm is 0") { CHECK(taas::clip_grad_norm_({at::ones({2})}, 1.0).item<double>() == 0); }

}  // namespace clip_grad_test
