#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "run/data_events.hpp"
#include "run/events.hpp"

namespace taas::hosts {

/// The run's journal on disk: one JSON line for each event and action, written as it happens. A disk that fails ends
/// the journal, not the run.
class JournalFile {
 public:
  static Result<JournalFile> open(const std::string& path, Instant run_start);

  /// The first failure to write is returned once; afterwards nothing is written.
  Result<> write(const run::Event& event);
  Result<> write(const run::Action& action);
  Result<> write(const run::DataEvent& event);

 private:
  JournalFile(std::string path, Fd file, Instant run_start);
  Result<> append(std::string line);

  std::string path_;
  Fd file_;
  Instant run_start_;
};

}  // namespace taas::hosts
