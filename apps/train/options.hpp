#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace taas::train {

/// What the command line and the environment ask for; the defaults are those of the program.
struct Options {
  std::string data;  ///< folder of IDX files; empty: generated digits
  std::optional<std::size_t> train_images;
  std::optional<std::size_t> test_images;
  std::int64_t test_batch_size = 250;
  int epochs = 5;
  std::int64_t batch_size = 64;  ///< per rank
  double lr = 1.0;
  double gamma = 0.7;  ///< what the learning rate is multiplied with after each epoch
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: as OMP_NUM_THREADS says, or one a core
  std::string backend = "auto";
  std::string output;                 ///< folder of the checkpoint; empty: none is written
  std::optional<std::string> resume;  ///< checkpoint to go on from
  bool check_equal = false;
  std::optional<double> target_accuracy;  ///< percent
  std::int64_t log_every = 0;             ///< steps; 0: by time

  /// Where the checkpoint of this run belongs; empty without an output folder.
  [[nodiscard]] std::string checkpoint() const { return output.empty() ? "" : output + "/checkpoint.pt"; }
};

/// The options, or the exit code of a program that has already said what there is to say (help, a wrong option).
struct ParsedOptions {
  Options options;
  std::optional<int> exit_code;
};

/// Reads the command line, TAAS_OUTPUT_DIR and TORCHELASTIC_RESTART_COUNT. Throws InputError for a checkpoint that is
/// asked for but not there.
ParsedOptions parse_options(int argc, char** argv);

}  // namespace taas::train
