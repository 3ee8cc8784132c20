#include "ui/text/rank_set.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"

namespace rank_set_test {

using namespace taas::ui;

TEST_CASE("rank sets are short") {
  CHECK(format_rank_set({}) == "");
  CHECK(format_rank_set(ranks({3})) == "3");
  CHECK(format_rank_set(ranks({0, 1, 2, 5})) == "0-2,5");
  CHECK(format_rank_set(ranks({0, 1})) == "0-1");
  CHECK(format_rank_set(ranks({7, 5, 3})) == "3,5,7");
  CHECK(format_rank_set(ranks({2, 0, 1, 2, 9, 10})) == "0-2,9-10");
}

}  // namespace rank_set_test
