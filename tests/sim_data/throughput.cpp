#include "throughput.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "world.hpp"

namespace taas::sim_data {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCost = 100ms;  // of a batch on a worker of speed 1

constexpr int kBatches = 2000;

/// A loop that takes batches as fast as they come, or at the speed of `step`.
Settings calm_settings(std::vector<double> slowness, int credits, Duration step, bool abandons) {
  Settings settings;
  settings.slowness = std::move(slowness);
  settings.credits = credits;
  settings.delay = 100us;
  settings.abandons = abandons;
  auto& loader = settings.loaders.emplace_back();
  loader.batches = loader.taken = kBatches;
  loader.ahead = 2 * credits;
  loader.cost = kCost;
  loader.step = step;
  return settings;
}

RunOutcome run(const Settings& settings) {
  auto outcome = World(1, settings).run();
  for (const auto& violation : outcome.violations) std::cout << violation << '\n';
  return outcome;
}

bool measure_speed(const std::vector<double>& slowness, int credits, bool abandons, double least) {
  auto outcome = run(calm_settings(slowness, credits, 0ms, abandons));
  double sum = 0;
  for (double each : slowness) sum += 1 / each / seconds(kCost);
  double speed = kBatches / seconds(outcome.length);
  bool good = outcome.violations.empty() && speed >= least * sum;
  std::cout << fmt::format(
      "workers {}x as slow, {} credits, what is withdrawn is {}: {:.1f} % of the sum of speeds, {} copies{}\n",
      fmt::join(slowness, ", "), credits, abandons ? "stopped" : "finished", 100 * speed / sum, outcome.copies,
      good ? "" : " (too slow)");
  return good;
}

bool measure_slow_batches(int credits, bool abandons, Duration step) {
  auto settings = calm_settings({1, 1, 1, 1}, credits, step, abandons);
  settings.loaders[0].slow_percent = 1;
  settings.loaders[0].slow_factor = 50;
  auto outcome = run(settings);
  Duration longest = 50 * kCost + kCost;  // what its worker had before it is allowed for
  bool good = outcome.violations.empty() && outcome.longest_wait <= longest;
  std::cout << fmt::format(
      "1 % of batches 50x slower, {} credits, work withdrawn is {}, steps of {:.0f} ms: the loop waits {:.2f} batches' "
      "time at most, {:.2f} s, {} copies{}\n",
      credits, abandons ? "stopped" : "finished", 1e3 * seconds(step), seconds(outcome.longest_wait) / seconds(kCost),
      seconds(outcome.length), outcome.copies, good ? "" : " (too long)");
  return good;
}

bool measure_frozen(int credits) {
  auto settings = calm_settings({1, 1, 1, 1}, credits, 0ms, false);
  settings.frozen = 1;
  auto outcome = run(settings);
  Duration longest = kCost * (credits / 3 + 5);  // until the credits are used up, and for two copies
  bool good = outcome.violations.empty() && outcome.longest_wait <= longest;
  std::cout << fmt::format("one of 4 workers is frozen, {} credits: the loop waits {:.2f} batches' time at most{}\n",
                           credits, seconds(outcome.longest_wait) / seconds(kCost), good ? "" : " (too long)");
  return good;
}

}  // namespace

bool measure_stragglers() {
  bool good = true;
  for (int credits : {8, 16, 32, 64}) {
    if (credits <= 32) good &= measure_frozen(credits);
    for (bool abandons : {false, true}) {
      good &= measure_speed({1, 1, 1, 10}, credits, abandons, 0.9);
      good &= measure_speed({1, 1, 1, 1}, credits, abandons, 0.98);
      good &= measure_speed({1, 1.5, 2, 2.5}, credits, abandons, 0.9);
      for (Duration step : {0ms, 30ms}) good &= measure_slow_batches(credits, abandons, step);
    }
  }
  return good;
}

}  // namespace taas::sim_data
