// Thousands of whole runs in virtual time, each with its own faults. TAAS_SEED=n replays one and prints its journal;
// TAAS_SEEDS says how many there are.

#include <cstdlib>
#include <iostream>
#include <map>

#include "catch.hpp"
#include "world.hpp"

namespace simulation_test {

using namespace taas::run;

namespace {

constexpr std::uint64_t kSeeds = 20000;

std::uint64_t seeds() {
  const char* count = std::getenv("TAAS_SEEDS");
  return count ? std::strtoull(count, nullptr, 10) : kSeeds;
}

Outcome simulate(std::uint64_t seed, bool tell = false) {
  World world(seed);
  if (tell) world.on_line = [](const std::string& line) { std::cout << line << '\n'; };
  Outcome outcome = world.run();
  for (const auto& violation : outcome.violations) {
    FAIL_CHECK("seed " << seed << ": " << violation << " (TAAS_SEED=" << seed << " replays it)");
  }
  return outcome;
}

}  // namespace

TEST_CASE("every run ends, leaves nothing behind and names what failed first") {
  if (const char* seed = std::getenv("TAAS_SEED")) {
    auto outcome = simulate(std::strtoull(seed, nullptr, 10), true);
    WARN("generations " << outcome.generations << ", " << outcome.verdict.summary);
    return;
  }
  std::map<Cause, int> causes;
  int restarted = 0;
  const auto last = seeds();
  for (std::uint64_t seed = 0; seed < last; ++seed) {
    auto outcome = simulate(seed);
    ++causes[outcome.verdict.cause];
    restarted += outcome.generations > 1;
  }
  // The worlds are varied enough to prove something.
  for (Cause cause : {Cause::kSuccess, Cause::kExitCode, Cause::kException, Cause::kSignal, Cause::kExecFailed,
                      Cause::kStopped, Cause::kOutputFailed}) {
    CHECK(causes[cause] > static_cast<int>(last / 200));
  }
  CHECK(restarted > static_cast<int>(last / 20));
}

}  // namespace simulation_test
