#include "launch/output/journal_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/files.hpp"

namespace taas::launch {

Result<JournalFile> JournalFile::open(const HeldPath& place, Instant run_start, std::int64_t most) {
  auto file = place.folder.open_to_append(place.name, 0644);
  if (!file) return std::move(file.error()).with("the journal");
  return JournalFile(place.path(), std::move(*file), run_start, most);
}

JournalFile::JournalFile(std::string path, Fd file, Instant run_start, std::int64_t most)
    : path_(std::move(path)), file_(std::move(file)), run_start_(run_start), most_(most) {}

/// Whole lines only: what a full disk has taken of one is given back.
Result<> JournalFile::append(const std::string& line, Must must) {
  auto end = ::lseek(file_.get(), 0, SEEK_END);
  if (end >= most_ && must == Must::kNo) {
    ++missing_;
    return tell(fmt::format("has {} bytes: of what follows it will hold the run's end only", end), 0);
  }
  auto written = write_all(file_, gap() + line + "\n");
  if (written) {
    missing_ = 0;
    return {};
  }
  ++missing_;
  bool whole = end < 0 || ::ftruncate(file_.get(), end) == 0;
  return tell(whole ? "misses lines from here on" : "misses lines from here on, and half of one",
              written.error().system_errno);
}

Result<> JournalFile::tell(std::string what, int system_errno) {
  if (std::exchange(told_, true)) return {};
  what = fmt::format("the journal {} {}", path_, what);
  return system_errno == 0 ? unavailable_error(what) : system_error(what, system_errno);
}

std::string JournalFile::gap() const {
  if (missing_ == 0) return "";
  std::chrono::duration<double> since_start = steady_now() - run_start_;
  return fmt::format(R"({{"t":{:.6f},"event":"journal_gap","lines":{}}})", since_start.count(), missing_) + "\n";
}

}  // namespace taas::launch
