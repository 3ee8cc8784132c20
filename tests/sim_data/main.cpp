// Loops over data loaders in virtual time, each with its own workers and faults. test_sim_data --runs N does the seeds
// 0..N-1 and prints those that fail; --seed N replays one and prints what happens; --stragglers measures slow workers.

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

#include "throughput.hpp"
#include "world.hpp"

using namespace taas;
using namespace taas::sim_data;

namespace {

RunOutcome simulate(std::uint64_t seed, bool tell) {
  Random random(seed);
  World world(seed, draw_settings(random));
  if (tell) world.on_line = [](const std::string& line) { std::cout << line << '\n'; };
  auto outcome = world.run();
  for (const auto& violation : outcome.violations) {
    std::cout << fmt::format("seed {}: {} (test_sim_data --seed {} replays it)\n", seed, violation, seed);
  }
  return outcome;
}

int run_seeds(std::uint64_t first, std::uint64_t runs) {
  std::uint64_t failed = 0, copied = 0, given_up = 0, replayed = 0, downs = 0, beyond = 0;
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    auto outcome = simulate(seed, false);
    failed += !outcome.violations.empty();
    copied += outcome.copies > 0;
    given_up += outcome.given_up > 0;
    replayed += outcome.replayed > 0;
    downs += outcome.downs > 0;
    beyond += outcome.beyond_credits > 0;
  }
  std::cout << fmt::format(
      "{} runs, {} with a violation; with copies {}, workers lost {}, tasks given up {}, the rank replayed {}, heads "
      "beyond the credits {}\n",
      runs, failed, copied, downs, given_up, replayed, beyond);
  bool varied =
      copied > runs / 10 && downs > runs / 10 && given_up > runs / 200 && replayed > runs / 20 && beyond > runs / 20;
  if (runs >= 1000 && !varied) std::cout << "these worlds are not varied enough\n";
  return failed == 0 && (runs < 1000 || varied) ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  std::string_view option = count > 1 ? words[1] : "";
  std::uint64_t number = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
  std::uint64_t first = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
  if (option == "--stragglers") return measure_stragglers() ? 0 : 1;
  if (option == "--seed") return simulate(number, true).violations.empty() ? 0 : 1;
  if (option == "--runs") return run_seeds(first, number);
  std::cout << "usage: test_sim_data --runs N [FIRST] | --seed N | --stragglers\n";
  return 2;
}
