#include "proc/output/log_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace taas {

Result<> LogFile::open() {
  if (place_.empty() || try_to_open()) return {};
  return tell();
}

Result<> LogFile::append(std::string_view bytes) {
  if (place_.empty()) return {};
  if (try_to_open() && (missing_ == 0 || write_note())) bytes = write_some(bytes);
  missing_ += bytes.size();
  return bytes.empty() ? Result<>() : tell();
}

void LogFile::close() {
  if (file_ && missing_ > 0) write_note();
  file_.reset();
}

bool LogFile::try_to_open() {
  if (file_) return true;
  auto opened = place_.folder.open_to_append(place_.name, 0666);
  if (opened) file_ = std::move(*opened);
  if (!opened) reason_ = std::move(opened.error());
  return static_cast<bool>(file_);
}

Result<> LogFile::tell() {
  if (std::exchange(told_, true)) return {};
  return Error(reason_).with("log file");
}

/// All of it or nothing.
bool LogFile::write_note() {
  auto why = std::error_code(reason_.system_errno, std::generic_category()).message();
  auto note = fmt::format("\n[taas-run: {} bytes are missing here: {}]\n", missing_, why);
  auto left = write_some(note);
  if (left.empty()) {
    missing_ = 0;
    return true;
  }
  auto end = ::lseek(file_.get(), 0, SEEK_END);
  auto half = static_cast<off_t>(note.size() - left.size());
  bool mended = end < half || ::ftruncate(file_.get(), end - half) == 0;
  static_cast<void>(mended);  // half a note is no worse than what it tells of
  return false;
}

/// Returns what could not be written.
std::string_view LogFile::write_some(std::string_view bytes) {
  while (!bytes.empty()) {
    auto count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) reason_ = system_error("cannot write " + place_.path(), errno);
    if (count < 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return bytes;
}

}  // namespace taas
