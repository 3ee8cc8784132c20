#include "run/verdict/native_error.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxNativeMessageLines = 6;
constexpr std::size_t kMaxFrames = 8;

/// "==123==ERROR: AddressSanitizer: …", "WARNING: ThreadSanitizer: …".
bool is_sanitizer_report(std::string_view line) {
  return (contains(line, "ERROR: ") || contains(line, "WARNING: ")) && contains(line, "Sanitizer: ");
}

/// glog's way of dying: "F1121 11:08:02.364104 123 file.cc:12] Check failed: …".
bool is_check_failure(std::string_view line) {
  return line.size() > 5 && line[0] == 'F' && std::isdigit(static_cast<unsigned char>(line[1])) &&
         contains(line, "] Check failed");
}

bool is_assertion(std::string_view line) { return contains(line, ": Assertion `") && line.ends_with("' failed."); }

bool is_native_frame(std::string_view line) {
  auto start = line.find_first_not_of(' ');
  if (start == line.npos || start == 0) return false;
  auto text = line.substr(start);
  return text.starts_with("File \"") ||
         (text.size() > 1 && text[0] == '#' && std::isdigit(static_cast<unsigned char>(text[1])));
}

/// The rest of a what() is torch's own stack, which says little.
bool ends_native_message(std::string_view line) {
  return line.empty() || line.starts_with("Exception raised from") || line.starts_with("frame #");
}

void read_exception(std::span<const std::string> lines, NativeError& error) {
  for (; error.end < lines.size() && error.statement.size() < kMaxNativeMessageLines; ++error.end) {
    if (ends_native_message(lines[error.end]) || starts_native_error(lines[error.end])) return;
    error.statement.push_back(lines[error.end]);
  }
}

/// The first stack of the report, and its summary. What follows the summary of an error is a picture of memory; after a
/// warning the program goes on.
void read_stack(std::span<const std::string> lines, NativeError& error) {
  bool first_stack = true;
  for (; error.end < lines.size(); ++error.end) {
    const auto& line = lines[error.end];
    if (starts_native_error(line)) return;
    if (line.starts_with("SUMMARY: ")) {
      error.statement.push_back(line);
      if (contains(error.statement.front(), "WARNING: ")) return;
    }
    if (!is_native_frame(line)) {
      first_stack = first_stack && error.frames.empty();
    } else if (first_stack && error.frames.size() < kMaxFrames) {
      error.frames.push_back(line);
    }
  }
}

NativeError read(std::span<const std::string> lines, std::size_t begin) {
  NativeError error{{lines[begin]}, {}, begin, begin + 1};
  bool stack = is_sanitizer_report(lines[begin]) || lines[begin].starts_with("Fatal Python error: ");
  if (stack) read_stack(lines, error);
  if (lines[begin].starts_with("terminate called")) read_exception(lines, error);
  return error;
}

}  // namespace

bool starts_native_error(std::string_view line) {
  constexpr std::array<std::string_view, 9> kStarts{"terminate called ",
                                                    "libc++abi: terminating",
                                                    "Fatal Python error: ",
                                                    "*** stack smashing detected",
                                                    "*** buffer overflow detected",
                                                    "double free or corruption",
                                                    "free(): ",
                                                    "malloc(): ",
                                                    "corrupted size vs. prev_size"};
  bool known = std::any_of(kStarts.begin(), kStarts.end(), [&](auto start) { return line.starts_with(start); });
  return known || is_sanitizer_report(line) || is_assertion(line) || is_check_failure(line);
}

std::optional<NativeError> find_native_error(std::span<const std::string> lines) {
  std::optional<NativeError> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!starts_native_error(lines[i])) continue;
    auto next = read(lines, i);
    i = next.end - 1;
    bool follows = found && found->end == next.begin;
    if (!follows) found = std::move(next);
  }
  return found;
}

}  // namespace taas::run
