#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace taas::train {

/// What the command line and the environment ask for; the defaults are those of the program.
struct Options {
  std::string model = "mnist";              ///< or toy, resnet50, dummy
  std::string parallel = "ddp";             ///< or dp, model, pipeline
  std::size_t devices = 0;                  ///< of dp; 0: all GPUs, or the CPU once
  std::vector<std::int64_t> split_sizes{};  ///< of pipeline; the first one trains, all are measured for a plot
  std::string data;                         ///< folder of IDX files; empty: generated digits
  std::optional<std::size_t> train_images;
  std::optional<std::size_t> test_images;
  std::int64_t test_batch_size = 250;
  std::int64_t image_size = 128;  ///< height and width, of resnet50
  int epochs = 5;
  std::int64_t batch_size = 64;  ///< per rank
  double lr = 1.0;
  double gamma = 0.7;  ///< what the learning rate is multiplied with after each epoch
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: as OMP_NUM_THREADS says, or one a core
  std::string backend = "auto";
  bool graph = true;                  ///< record the step, where that is possible
  std::string output;                 ///< folder of the checkpoint; empty: none is written
  std::optional<std::string> resume;  ///< checkpoint to go on from
  bool check_equal = false;
  std::optional<double> target_accuracy;  ///< percent
  std::int64_t log_every = 0;             ///< steps; 0: by time
  std::string plot;                       ///< file of the step times; empty: none is written

  /// Where the checkpoint of this run belongs; empty without an output folder.
  [[nodiscard]] std::string checkpoint() const;
  /// Whether the model learns digits, and not random numbers.
  [[nodiscard]] bool learns_digits() const { return model == "mnist"; }
  /// Whether the model's parts are on two devices.
  [[nodiscard]] bool cuts_model() const { return parallel == "model" || parallel == "pipeline"; }
};

/// The options, or the exit code of a program that has already said what there is to say (help, a wrong option).
struct ParsedOptions {
  Options options;
  std::optional<int> exit_code;
};

/// Reads the command line, TAAS_OUTPUT_DIR, WORLD_SIZE and TORCHELASTIC_RESTART_COUNT. Throws InputError for options
/// that exclude each other, and for a checkpoint that is asked for but not there.
ParsedOptions parse_options(int argc, char** argv);

}  // namespace taas::train
