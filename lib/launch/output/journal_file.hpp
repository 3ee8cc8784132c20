#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/folders/held_folder.hpp"

namespace taas::launch {

/// The run's journal on disk: one JSON line for each event and action. A disk that takes nothing for a while costs the
/// lines that came meanwhile; where they are missing, a line "journal_gap" says how many.
class JournalFile {
 public:
  /// Bytes. After so many, only a line that has to be there is written: the run's end.
  static constexpr std::int64_t kMost = std::int64_t{256} << 20;
  enum class Must { kNo, kYes };

  /// An open file, which errors call `path`.
  JournalFile(std::string path, Fd file, Instant run_start, std::int64_t most = kMost);
  static Result<JournalFile> open(const HeldPath& place, Instant run_start, std::int64_t most = kMost);

  /// The first failure of all is returned; each later line is tried again.
  Result<> append(const std::string& line, Must must = Must::kNo);
  /// Lines that will never come.
  void miss(long lines) { missing_ += lines; }
  [[nodiscard]] Instant run_start() const { return run_start_; }

 private:
  Result<> tell(std::string what, int system_errno);
  [[nodiscard]] std::string gap() const;

  std::string path_;
  Fd file_;
  Instant run_start_;
  std::int64_t most_;
  long missing_ = 0;  // lines, since the last one that is in the file
  bool told_ = false;
};

}  // namespace taas::launch
