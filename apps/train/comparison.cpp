#include "comparison.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "job.hpp"
#include "trainer.hpp"

namespace taas::train {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostSteps = 10;  // of a way that is only measured

/// So many steps of a new model; item() waits for the device.
std::vector<double> measure(const Options& options, const ProcessGroup& group, const BatchSource& source,
                            std::size_t steps) {
  auto model = make_spread_model(options, group);
  auto optimizer = make_optimizer(options, *model.module, false).optimizer;
  const auto batches = split_batches(at::arange(source.size(), at::kLong), options.batch_size);
  std::vector<double> seconds;
  while (seconds.size() < steps) {
    const auto start = Clock::now();
    learn_from(model, *optimizer, source, batches[seconds.size() % batches.size()]).item<double>();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

std::string label_of(const Options& options, const ProcessGroup& group) {
  if (options.parallel == "model") return "model parallel";
  if (options.parallel == "pipeline") return "pipeline, parts of " + std::to_string(options.split_sizes.front());
  const auto ranks = group.world_size();
  return options.parallel + ", " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

Options with_parallel(Options options, const std::string& parallel) {
  options.parallel = parallel;
  return options;
}

}  // namespace

Plot make_plot(const Options& options, const ProcessGroup& group, const BatchSource& source,
               std::vector<double> seconds) {
  const auto steps = std::min(seconds.size(), kMostSteps);
  Plot plot{.ylabel = "seconds per step of " + options.model,
            .bars = {{label_of(options, group), std::move(seconds)}},
            .split_sizes = {},
            .split_seconds = {}};
  if (!options.cuts_model()) return plot;
  const auto compare = [&](const std::string& label, const std::string& parallel) {
    plot.bars.push_back({label, measure(with_parallel(options, parallel), group, source, steps)});
  };
  if (options.parallel == "pipeline") compare("model parallel", "model");
  compare("one device", "ddp");
  if (options.split_sizes.size() < 2) return plot;
  for (auto size : options.split_sizes) {
    auto variant = options;
    variant.split_sizes = {size};
    plot.split_sizes.push_back(size);
    plot.split_seconds.push_back(measure(variant, group, source, steps));
  }
  return plot;
}

}  // namespace taas::train
