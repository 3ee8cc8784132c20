#include "option_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "input_error.hpp"

namespace taas::train {
namespace {

constexpr std::int64_t kParts = 6;  // of a batch in a pipeline

/// What a model trains with unless the command line says otherwise; of mnist, Options itself has it.
struct ModelDefaults {
  const char* model;
  int epochs;
  std::int64_t batch_size;
  std::size_t train_images;
};
constexpr ModelDefaults kModelDefaults[] = {{"toy", 1, 20, 20}, {"resnet50", 3, 120, 360}, {"dummy", 1, 8, 32}};
constexpr double kLearningRateOfSgd = 0.001;

bool has_other_ranks() {
  const char* size = std::getenv("WORLD_SIZE");
  return size != nullptr && std::atoi(size) > 1;
}

void check_model(const Options& options, const std::string& preset, const IsGiven& given) {
  if (preset == "mnist" && !options.learns_digits()) {
    throw InputError(fmt::format("--preset mnist is for --model mnist, not {0}: leave out one of them", options.model));
  }
  if (!options.learns_digits()) {
    for (const auto* name : {"--data", "--test-images", "--test-batch-size", "--gamma", "--target-accuracy"}) {
      if (!given(name)) continue;
      throw InputError(
          fmt::format("{} is for --model mnist: {} learns random numbers and is not tested", name, options.model));
    }
  }
  if (given("--image-size") && options.model != "resnet50") {
    throw InputError(fmt::format("--image-size is for --model resnet50, not {}: leave it out", options.model));
  }
}

void check_parallel(const Options& options, const IsGiven& given) {
  const auto& parallel = options.parallel;
  if (options.cuts_model() && options.model != "resnet50") {
    throw InputError(
        fmt::format("--parallel {} cuts ResNet-50 in two: add --model resnet50, or use ddp or dp", parallel));
  }
  if (given("--devices") && parallel != "dp") {
    throw InputError(fmt::format("--devices is for --parallel dp, not {}: leave it out", parallel));
  }
  if (given("--split-size") && parallel != "pipeline") {
    throw InputError(fmt::format("--split-size is for --parallel pipeline, not {}: leave it out", parallel));
  }
  if (options.split_sizes.size() > 1 && options.plot.empty()) {
    throw InputError("several --split-size are measured for a plot: give one of them, or add --plot FILE");
  }
  if (parallel == "ddp") return;
  if (given("--backend")) {
    throw InputError(fmt::format("--backend is for --parallel ddp, not {}: one process needs none", parallel));
  }
  if (has_other_ranks()) {
    throw InputError(fmt::format(
        "--parallel {} uses all its devices from one process: start it without a launcher or with --nproc-per-node 1, "
        "or use --parallel ddp",
        parallel));
  }
}

}  // namespace

void check_rules(const Options& options, const std::string& preset, const IsGiven& given) {
  check_model(options, preset, given);
  check_parallel(options, given);
}

void apply_defaults(Options& options, const std::string& preset, const IsGiven& given) {
  if (preset == "mnist") {
    if (!given("--epochs")) options.epochs = 9;
    if (!given("--test-batch-size")) options.test_batch_size = 1000;
    if (!given("--log-every")) options.log_every = 200;
  }
  for (const auto& defaults : kModelDefaults) {
    if (options.model != defaults.model) continue;
    if (!given("--epochs")) options.epochs = defaults.epochs;
    if (!given("--batch-size")) options.batch_size = defaults.batch_size;
    if (!given("--train-images")) options.train_images = defaults.train_images;
    if (!given("--lr")) options.lr = kLearningRateOfSgd;
    options.gamma = 1;
  }
  if (options.parallel == "pipeline" && options.split_sizes.empty()) {
    options.split_sizes = {std::max<std::int64_t>(1, options.batch_size / kParts)};
  }
}

}  // namespace taas::train
