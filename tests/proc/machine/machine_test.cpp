#include "proc/machine/machine.hpp"

#include <sched.h>

#include <cstdlib>

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

TEST_CASE("CUDA_VISIBLE_DEVICES leaves as many GPUs as CUDA would see") {
  CHECK(count_visible_gpus(std::nullopt, 8) == 8);
  CHECK(count_visible_gpus(std::nullopt, 0) == 0);
  CHECK(count_visible_gpus("", 8) == 0);
  CHECK(count_visible_gpus("-1", 8) == 0);
  CHECK(count_visible_gpus("3", 8) == 1);
  CHECK(count_visible_gpus("0,1,2", 8) == 3);
  CHECK(count_visible_gpus("0, 2", 8) == 2);
  CHECK(count_visible_gpus("0,1,-1,2", 8) == 2);
  CHECK(count_visible_gpus("0,9,1", 8) == 1);
  CHECK(count_visible_gpus("NoDevFiles", 8) == 0);
  CHECK(count_visible_gpus("GPU-8932f937-d72c,GPU-3a23", 8) == 2);
  CHECK(count_visible_gpus("MIG-54f2f8a5-33b2,MIG-9f1c", 1) == 2);
  CHECK(count_visible_gpus("0,1", 0) == 0);
}

TEST_CASE("hiding all GPUs hides all GPUs") {
  const char* before = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string saved = before == nullptr ? "" : before;
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  CHECK(visible_gpus() == 0);
  if (before == nullptr) {
    ::unsetenv("CUDA_VISIBLE_DEVICES");
  } else {
    ::setenv("CUDA_VISIBLE_DEVICES", saved.c_str(), 1);
  }
}

TEST_CASE("the host has a name") { CHECK_FALSE(hostname().empty()); }

}  // namespace machine_test
