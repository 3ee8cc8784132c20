// Whole runs over many nodes in virtual time, each with its own faults. test_sim --runs N does the seeds 0..N-1 and
// prints those that fail; --seed N replays one and prints its journal; --scale measures one run of 4,096 nodes.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <numeric>
#include <string_view>

#include "cluster.hpp"

using namespace taas;
using namespace taas::sim;

namespace {

Outcome simulate(std::uint64_t seed, bool tell) {
  Random random(seed);
  Cluster cluster(seed, draw_settings(random));
  if (tell) cluster.on_line = [](const std::string& line) { std::cout << line << '\n'; };
  auto outcome = cluster.run();
  for (const auto& violation : outcome.violations) {
    std::cout << fmt::format("seed {}: {} (test_sim --seed {} replays it)\n", seed, violation, seed);
  }
  return outcome;
}

/// The worlds are varied enough to prove something.
bool varied(const std::map<run::Cause, std::uint64_t>& causes, std::uint64_t restarted, std::uint64_t lost,
            std::uint64_t runs) {
  bool all = restarted > runs / 20 && lost > runs / 20;
  for (auto cause : {run::Cause::kSuccess, run::Cause::kNodeLost, run::Cause::kStopped, run::Cause::kSignal,
                     run::Cause::kException, run::Cause::kNodesMissing}) {
    auto found = causes.find(cause);
    all = all && found != causes.end() && found->second > runs / 200;
  }
  return all;
}

int run_seeds(std::uint64_t first, std::uint64_t runs) {
  std::uint64_t failed = 0;
  std::uint64_t hasty = 0;
  std::uint64_t restarted = 0;
  std::uint64_t lost = 0;
  std::map<run::Cause, std::uint64_t> causes;
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    auto outcome = simulate(seed, false);
    failed += !outcome.violations.empty();
    hasty += outcome.node_timeout < std::chrono::seconds(3);
    restarted += outcome.generations > 1;
    lost += outcome.nodes_lost > 0;
    ++causes[outcome.verdict.cause];
  }
  std::cout << fmt::format(
      "{} runs ({} of them with a node timeout of 2.5 s, the others with 30 s), {} with a violation; {} restarted, "
      "{} lost a node; verdicts:",
      runs, hasty, failed, restarted, lost);
  for (const auto& [cause, count] : causes) std::cout << fmt::format(" {}:{}", static_cast<int>(cause), count);
  std::cout << '\n';
  bool enough = runs < 1000 || varied(causes, restarted, lost, runs);
  if (!enough) std::cout << "these worlds are not varied enough\n";
  return failed == 0 && enough ? 0 : 1;
}

struct Measured {
  Outcome outcome;
  double mean = 0;             ///< messages per node
  std::uint64_t of_plain = 0;  ///< of the last node, to which nothing special happens
};

Measured measure(int nodes) {
  auto began = std::chrono::steady_clock::now();
  Cluster cluster(1, plain_settings(nodes, 8));
  cluster.fail_once();
  Measured result{cluster.run()};
  auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const auto& messages = result.outcome.messages;
  auto total = std::accumulate(messages.begin(), messages.end(), std::uint64_t{});
  result.mean = static_cast<double>(total) / nodes;
  result.of_plain = messages.back();
  std::cout << fmt::format(
      "{} nodes x 8 ranks: {} generations in {:.2f} s of virtual time, {:.2f} s of wall time; "
      "messages per node: {:.2f} in the mean, {} of a plain node, {} of the first\n",
      nodes, result.outcome.generations, seconds(result.outcome.length), took, result.mean, result.of_plain,
      messages.front());
  for (const auto& violation : result.outcome.violations) std::cout << violation << '\n';
  return result;
}

int scale() {
  auto small = measure(64);
  auto large = measure(4096);
  bool sound = small.outcome.violations.empty() && large.outcome.violations.empty();
  bool restarted = small.outcome.generations == 2 && large.outcome.generations == 2;
  bool well = large.outcome.verdict.exit_code == 0;
  bool same = small.of_plain == large.of_plain && large.mean <= small.mean;
  if (!same) std::cout << "messages per node grow with the number of nodes\n";
  return sound && restarted && well && same ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  std::string_view option = count > 1 ? words[1] : "";
  std::uint64_t number = count > 2 ? std::strtoull(words[2], nullptr, 10) : 0;
  std::uint64_t first = count > 3 ? std::strtoull(words[3], nullptr, 10) : 0;
  if (option == "--scale") return scale();
  if (option == "--seed") return simulate(number, true).violations.empty() ? 0 : 1;
  if (option == "--runs") return run_seeds(first, number);
  std::cout << "usage: test_sim --runs N [FIRST] | --seed N | --scale\n";
  return 2;
}
