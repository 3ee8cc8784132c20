#include "option_rules.hpp"

#include <fmt/format.h>

#include "input_error.hpp"

namespace taas::train {
namespace {

/// What a model trains with unless the command line says otherwise; of mnist, Options itself has it.
struct ModelDefaults {
  const char* model;
  int epochs;
  std::int64_t batch_size;
  std::size_t train_images;
};
constexpr ModelDefaults kModelDefaults[] = {{"toy", 1, 20, 20}, {"resnet50", 3, 120, 360}, {"dummy", 1, 8, 32}};
constexpr double kLearningRateOfSgd = 0.001;

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

}  // namespace

void check_rules(const Options& options, const std::string& preset, const IsGiven& given) {
  check_model(options, preset, given);
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
}

}  // namespace taas::train
