#include "taas/clip_grad.hpp"

#include <ATen/Functions.h>

#include "../spawn_ranks.hpp"
#include "catch.hpp"
#include "taas/error.hpp"

namespace clip_grad_test {

using taas::test::problems;
using taas::test::spawn_ranks;

// Equality with Python to the bit is tested by clip_grad_reference.py.

TEST_CASE("Norms over the shards of all ranks are those of the whole") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "clip_shards", {.world_size = 3})) == "");
}

TEST_CASE("A norm that is not finite is an error only where that is asked for") {
  auto parameter = at::ones({2});
  parameter.mutable_grad() = at::full({2}, INFINITY);
  CHECK_THROWS_WITH(taas::clip_grad_norm_({parameter}, 1.0, {.error_if_nonfinite = true}),
                    ContainsSubstring("is inf, so that they cannot be clipped"));
  CHECK(at::isinf(parameter.grad()).all().item<bool>());
  taas::clip_grad_norm_({parameter}, 1.0);
  CHECK(at::isnan(parameter.grad()).all().item<bool>());
}

TEST_CASE("Without gradients the norm is 0 and nothing is clipped") {
  CHECK(taas::clip_grad_norm_({at::ones({2})}, 1.0).item<double>() == 0);
  taas::clip_grad_value_({at::ones({2})}, 1.0);
}

}  // namespace clip_grad_test
