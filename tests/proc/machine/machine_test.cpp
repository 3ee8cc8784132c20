#include "proc/machine/machine.hpp"

#include <sched.h>

#include "catch.hpp"

namespace machine_test {

using namespace taas;

TEST_CASE("the affinity mask bounds the usable cores") {
  cpu_set_t before;
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  }
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  auto cores = usable_cores();
  ::sched_setaffinity(0, sizeof before, &before);
  CHECK(cores == 1);
}

TEST_CASE("the host has a name") { CHECK_FALSE(hostname().empty()); }

}  // namespace machine_test
