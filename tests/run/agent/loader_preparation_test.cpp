#include "run/agent/loader_preparation.hpp"

#include "catch.hpp"

namespace loader_preparation_test {

using namespace taas::run;

TEST_CASE("a loader is prepared when all workers are done") {
  LoaderPreparation preparation(2, 1000);
  CHECK_FALSE(preparation.complete());
  preparation.update({0, 5, 100, true, {}});
  CHECK(preparation.began(0));
  CHECK_FALSE(preparation.began(1));
  preparation.update({1, 1, 20, false, {}});
  CHECK_FALSE(preparation.complete());
  preparation.update({1, 5, 100, true, {}});
  CHECK(preparation.complete());
}

TEST_CASE("or when the memory is full") {
  LoaderPreparation preparation(2, 1000);
  preparation.update({0, 5, 600, false, {}});
  preparation.update({0, 8, 900, false, {}});
  CHECK_FALSE(preparation.complete());
  preparation.update({1, 1, 100, false, {}});
  CHECK(preparation.complete());
}

TEST_CASE("what a worker had made ends with it") {
  LoaderPreparation preparation(1, 1000);
  preparation.update({0, 5, 100, true, {}});
  preparation.forget(0);
  CHECK_FALSE(preparation.began(0));
  CHECK_FALSE(preparation.complete());
}

}  // namespace loader_preparation_test
