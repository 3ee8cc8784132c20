#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace taas::train {

/// How long steps took in one way of training.
struct StepTimes {
  std::string label;
  std::vector<double> seconds;
};

/// What --plot writes: a bar for each way of training, and how long steps take for each size of a pipeline's parts.
struct Plot {
  std::string ylabel;
  std::vector<StepTimes> bars;
  std::vector<std::int64_t> split_sizes;           ///< of the curve; empty: there is none
  std::vector<std::vector<double>> split_seconds;  ///< for each of them
};

/// As JSON: {"ylabel", "bars": [{"label", "seconds"}], "curve": {"split_size", "seconds"}}.
std::string to_json(const Plot& plot);

/// Throws InputError when the file cannot be written; it is left as it is, or made.
void check_plot_file(const std::string& path);
void write_plot(const std::string& path, const Plot& plot);

}  // namespace taas::train
