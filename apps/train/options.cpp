#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "input_error.hpp"

namespace taas::train {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void add_data_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data, "Folder of IDX files, plain or gzip (default: generated digits)")
      ->type_name("DIR");
  app.add_option("--train-images", options.train_images, "Train on so many images (default: all; 8000 generated)")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--test-images", options.test_images, "Test on so many images (default: all; 2000 generated)")
      ->check(CLI::Range(1, 100'000'000));
  app.add_option("--test-batch-size", options.test_batch_size, "Images per rank and step of a test")
      ->check(CLI::Range(1, 1 << 20));
}

void add_training_options(CLI::App& app, Options& options) {
  app.add_option("--epochs", options.epochs, "How often to go through the data")->check(CLI::Range(0, 1'000'000));
  app.add_option("--batch-size", options.batch_size, "Images per rank and step")->check(CLI::Range(2, 1 << 20));
  app.add_option("--lr", options.lr, "Learning rate of Adadelta")->check(CLI::Range(0.0, 1000.0));
  app.add_option("--gamma", options.gamma, "Factor on the learning rate after each epoch")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--seed", options.seed, "Seed of everything random");
  app.add_option("--threads", options.threads, "Threads per rank (default: OMP_NUM_THREADS, or one a core)")
      ->check(CLI::Range(1, 4096));
  app.add_option("--backend", options.backend, "How ranks talk to each other: auto, gloo or nccl")
      ->check(CLI::IsMember({"auto", "gloo", "nccl"}));
}

void add_output_options(CLI::App& app, Options& options) {
  app.add_option("--output", options.output, "Folder for checkpoint.pt (default: TAAS_OUTPUT_DIR, or none is written)")
      ->type_name("DIR");
  app.add_option("--resume", options.resume, "Go on from a checkpoint (default: the one in the output folder)")
      ->expected(0, 1)
      ->type_name("[PATH]");
  app.add_flag("--check-equal", options.check_equal, "At the end, compare the model of all ranks to the bit");
  app.add_option("--target-accuracy", options.target_accuracy, "Exit with 3 when the accuracy is below, in percent")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--log-every", options.log_every, "A line every so many steps (default: every two seconds)")
      ->check(CLI::Range(1, 1'000'000'000));
}

/// Asked for with --resume; or after a restart by the launcher, when there is something to go on from.
std::optional<std::string> choose_resume(const Options& options, bool asked) {
  auto path = options.resume.value_or("");
  if (path.empty()) path = options.checkpoint();
  std::error_code ignored;
  const bool there = std::filesystem::is_regular_file(path, ignored);
  const auto restarts = environment("TORCHELASTIC_RESTART_COUNT");
  if (!asked) return there && !restarts.empty() && restarts != "0" ? std::optional(path) : std::nullopt;
  if (path.empty())
    throw InputError("--resume does not know where the checkpoint is: give --resume=PATH or --output DIR");
  if (!there)
    throw InputError(fmt::format("no checkpoint at {}: give --resume=PATH, or leave --resume out to start anew", path));
  return path;
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
  options.output = environment("TAAS_OUTPUT_DIR");
  CLI::App app{"Trains a network for digits, on one rank or many (under taas-run or torchrun)", "train"};
  app.option_defaults()->always_capture_default();
  add_data_options(app, options);
  add_training_options(app, options);
  add_output_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {options, app.exit(error)};
    fmt::print(stderr, "train: {} (train --help lists the options)\n", error.what());
    return {options, 2};
  }
  options.resume = choose_resume(options, app.count("--resume") > 0);
  return {options, std::nullopt};
}

}  // namespace taas::train
