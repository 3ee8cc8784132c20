#include "taas/step.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"

namespace step_test {

/// The variable is read once, so that there is one case.
TEST_CASE("steps are counted where TAAS_STEPS says") {
  const auto path = std::filesystem::temp_directory_path() / ("taas-steps-" + std::to_string(::getpid()));
  std::filesystem::remove(path);
  ::setenv("TAAS_STEPS", path.c_str(), 1);
  taas::step();
  taas::step(4);
  struct {
    std::uint64_t steps;
    std::int64_t last_ns;
    double rate;
  } count{};
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&count), sizeof count);
  std::filesystem::remove(path);
  CHECK(count.steps == 5);
  CHECK(count.last_ns > 0);
  CHECK(count.rate > 0);
}

}  // namespace step_test
