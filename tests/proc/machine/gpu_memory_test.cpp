#include "proc/machine/gpu_memory.hpp"

#include "catch.hpp"

namespace proc_gpu_memory_test {

using namespace taas;

TEST_CASE("the GPU of an error is the one that torch names") {
  CHECK(gpu_of_error("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.10 GiB") == 3);
  CHECK(gpu_of_error("GPU memory is short. GPU 12 has a total capacity") == 12);
  CHECK(gpu_of_error("CUDA error: out of memory") == 0);
}

TEST_CASE("a GPU that a process sees has the driver's name") {
  CHECK(name_of_visible_gpu(1, std::nullopt) == "1");
  CHECK(name_of_visible_gpu(0, "5") == "5");
  CHECK(name_of_visible_gpu(1, "5, 7") == "7");
  CHECK(name_of_visible_gpu(1, "GPU-1a,GPU-2b") == "GPU-2b");
  for (auto [index, visible] : {std::pair(0, ""), std::pair(2, "5,7"), std::pair(0, "-1")}) {
    INFO(visible);
    CHECK_FALSE(name_of_visible_gpu(index, visible));
  }
}

TEST_CASE("without a driver nobody holds a GPU's memory") {
  CHECK(gpu_memory_holders("no such GPU", GpuOrder::kBus, std::chrono::seconds(10)).empty());
}

}  // namespace proc_gpu_memory_test
