#include "graph_choice.hpp"

#include "catch.hpp"

namespace graph_choice_test {

using namespace taas::train;

TEST_CASE("a step is recorded by itself only where all checks were green with these versions") {
  const GpuVersions here{"580.65.06", "2.15.0", "2.30.7"};
  const std::string green = "all\t2026-11-26\t580.65.06\t2.15.0+cu132\t2.30.7\t1 x H100\n";
  CHECK(was_all_green(green, here));
  CHECK(was_all_green("hang\t2026-11-20\t1\t2\t3\tx\n" + green, here));
  CHECK_FALSE(was_all_green("", here));
  CHECK_FALSE(was_all_green("hang" + green.substr(3), here));
  CHECK_FALSE(was_all_green("all\t2026-11-26\n", here));
  CHECK_FALSE(was_all_green(green, {"580.65.07", "2.15.0", "2.30.7"}));
  CHECK_FALSE(was_all_green(green, {"580.65.06", "2.16.0", "2.30.7"}));
  CHECK_FALSE(was_all_green(green, {"580.65.06", "2.15.0", "2.30.8"}));
  CHECK_FALSE(was_all_green("all\t2026-11-26\t\t2.15.0\t\tx\n", {"", "2.15.0", ""}));
}

}  // namespace graph_choice_test
