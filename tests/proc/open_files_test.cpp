#include "proc/open_files.hpp"

#include "processes.hpp"

namespace open_files_test {

using namespace taas;
using namespace taas::test;

TEST_CASE("the limit is raised for the launcher and restored for a rank") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit low{64, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  auto former = raise_open_files_limit();
  rlimit now{};
  ::getrlimit(RLIMIT_NOFILE, &now);
  auto request = shell("ulimit -Sn");
  request.open_files_limit = former;
  auto text = output_of(std::move(request));
  auto again = raise_open_files_limit();
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(former == 64u);
  CHECK(now.rlim_cur == before.rlim_max);
  CHECK(text == "64\n");
  CHECK_FALSE(again.has_value());
}

}  // namespace open_files_test
