#include "proc/spawn/open_files.hpp"

#include <algorithm>

#include "proc/processes.hpp"

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

TEST_CASE("clients leave the descriptors that a launcher with so many ranks needs, and a quarter at least") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto under = [&](rlim_t limit, int ranks) {
    const rlimit low{limit, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    const auto clients = open_files_for_clients(ranks);
    ::setrlimit(RLIMIT_NOFILE, &before);
    return clients;
  };
  CHECK(under(112, 8) == 24);  // what check_open_files_limit() asks for
  CHECK(under(1024, 8) == 768);
  CHECK(under(1024, 160) == 176);
  CHECK(under(64, 8) == 8);
}

TEST_CASE("a limit that is too low for so many ranks is told with the number needed") {
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(check_open_files_limit(0).has_value());
  CHECK(check_open_files_limit(1).has_value());
  if (limit.rlim_max == RLIM_INFINITY) return;
  auto enough = check_open_files_limit(static_cast<int>(std::min<rlim_t>(limit.rlim_max, 1 << 28)));
  REQUIRE(enough.has_error());
  CHECK_THAT(enough.error().message, ContainsSubstring("the limit of open files is " + std::to_string(limit.rlim_max)));
}

}  // namespace open_files_test
