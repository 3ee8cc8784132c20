// dist_rank SCENARIO: one rank of a test of lib/training. What went wrong goes to standard output.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "rank_scenarios.hpp"

namespace taas::test {

void expect(bool good, const std::string& what) {
  const char* rank = std::getenv("RANK");
  if (!good) throw std::logic_error("rank " + std::string(rank ? rank : "-") + ": " + what);
}

}  // namespace taas::test

int main(int argc, char** argv) try {
  auto scenarios = taas::test::collective_scenarios();
  scenarios.merge(taas::test::data_parallel_scenarios());
  scenarios.merge(taas::test::group_scenarios());
  scenarios.merge(taas::test::hook_scenarios());
  scenarios.merge(taas::test::loss_scenarios());
  scenarios.merge(taas::test::checkpoint_scenarios());
  scenarios.merge(taas::test::scaled_scenarios());
  scenarios.merge(taas::test::sums_scenarios());
  scenarios.merge(taas::test::sync_batch_norm_scenarios());
  scenarios.merge(taas::test::zero_scenarios());
  const auto found = scenarios.find(argc == 2 ? argv[1] : "");
  if (found == scenarios.end()) {
    std::cout << "no such scenario\n";
    return 2;
  }
  found->second();
  return 0;
} catch (const std::exception& error) {
  std::cout << error.what() << '\n';
  return 1;
}
