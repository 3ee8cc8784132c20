#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "run/events/events.hpp"

namespace taas::launch {

/// TORCHELASTIC_ERROR_FILE of this launcher's own environment, where it says why the run failed, as torchrun does: for
/// whoever started this launcher, a scheduler, or a launcher whose rank this one is. Links that lead there are followed
/// before any rank runs. What ranks put in its place later is not written to.
class FailureRecord {
 public:
  explicit FailureRecord(const std::map<std::string, std::string>& environment);

  /// Nothing is written of a run that has succeeded, or where the environment names no file.
  [[nodiscard]] Result<> write(const run::Verdict& verdict) const;

 private:
  [[nodiscard]] bool is_what_it_was(const struct stat& found) const;

  std::string path_;  // as the environment has it; empty: none
  std::string name_;  // in the folder
  Result<Fd> folder_ = Fd();
  std::optional<struct stat> first_;  // what had the name when the run began
};

}  // namespace taas::launch
