#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/environment/environment.hpp"
#include "base/ids.hpp"

namespace taas::node {

/// What a rank says of its steps (TAAS_STEPS, docs/environment.md).
struct StepCount {
  std::uint64_t steps = 0;
  std::int64_t last_ns = 0;  ///< CLOCK_MONOTONIC; 0: there was none
  double rate = 0;           ///< steps a second
};

/// Where ranks count their steps: files that they make themselves, in a folder of this user's on this machine, if they
/// count any. Removed with this object; those of a launcher that was killed are removed after a day (runtime_folder()),
/// unless a rank that lives holds their lock.
class StepFiles {
 public:
  /// Without such a folder nothing is counted.
  explicit StepFiles(const Environment& environment);
  ~StepFiles();
  StepFiles(const StepFiles&) = delete;
  StepFiles& operator=(const StepFiles&) = delete;

  /// Empty: nothing is counted.
  [[nodiscard]] std::string path(Generation generation, Rank rank);

 private:
  std::string folder_;
  std::string prefix_;           // of names there
  std::set<std::string> given_;  // paths
};

/// What is no such file counts nothing.
StepCount read_steps(const std::string& path);

}  // namespace taas::node
