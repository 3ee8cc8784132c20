#include "training/backend/torch_version.hpp"

#include <torch/version.h>

#include "catch.hpp"

namespace torch_version_test {

using namespace taas;

TEST_CASE("the loaded torch says which one it is") { CHECK(loaded_torch_version() == TORCH_VERSION); }

TEST_CASE("another minor version is another binary interface, a patch is not") {
  CHECK(version_mismatch("torch", "2.15.0", "2.15.0").empty());
  CHECK(version_mismatch("torch", "2.15.0", "2.15.2").empty());
  CHECK(version_mismatch("torch", "2.15.0", "").empty());  // it does not say
  CHECK(version_mismatch("NCCL", "2.30", "2.30").empty());
  CHECK_THAT(version_mismatch("torch", "2.15.0", "2.1.5"),
             ContainsSubstring("libtaas was built with torch 2.15.0, and this program has found torch 2.1.5: build"));
  CHECK_FALSE(version_mismatch("torch", "2.15.0", "3.15.0").empty());
  CHECK_FALSE(version_mismatch("NCCL", "2.30", "2.28").empty());
}

}  // namespace torch_version_test
