#include "run/verdict/native_error.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxNativeMessageLines = 6;
constexpr std::size_t kMaxFrames = 8;
constexpr std::ptrdiff_t kMostBetween = 10;  // lines of other threads between an error and the abort
constexpr std::string_view kOfFaulthandler = "Fatal Python error: ";

/// "==123==ERROR: AddressSanitizer: …", "WARNING: ThreadSanitizer: …".
bool is_sanitizer_report(std::string_view line) {
  return (contains(line, "ERROR: ") || contains(line, "WARNING: ")) && contains(line, "Sanitizer: ");
}

/// glog's way of dying: "F1121 11:08:02.364104 123 file.cc:12] Check failed: …".
bool is_check_failure(std::string_view line) {
  return line.size() > 5 && line[0] == 'F' && std::isdigit(static_cast<unsigned char>(line[1])) &&
         contains(line, "] Check failed");
}

/// torch's nccl2 before it aborts: "[E1129 …] [TC][…] Aborting process on rank 1 due to error - nccl hit async error:
/// …". Where this begins in the line; npos: it is none.
std::size_t find_nccl2_abort(std::string_view line) {
  auto begin = line.find("Aborting process on rank ");
  return begin == line.npos || line.find(" due to ", begin) == line.npos ? line.npos : begin;
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

/// Of faulthandler's stacks, one a thread, that of the thread that crashed; where that is none of Python's, the last
/// one, which is the main thread's.
void read_threads(std::span<const std::string> lines, NativeError& error) {
  struct Stack {
    bool crashed = false;
    std::vector<std::string> frames = {};
  };
  std::vector<Stack> stacks(1);
  for (; error.end < lines.size() && !starts_native_error(lines[error.end]); ++error.end) {
    const auto& line = lines[error.end];
    const bool crashed = line.starts_with("Current thread 0x");
    if (crashed || line.starts_with("Thread 0x")) {
      stacks.push_back({crashed});
    } else if (is_native_frame(line) && stacks.back().frames.size() < kMaxFrames) {
      stacks.back().frames.push_back(line);
    }
  }
  std::erase_if(stacks, [](const Stack& stack) { return stack.frames.empty(); });
  if (stacks.empty()) return;
  auto crashed = std::ranges::find(stacks, true, &Stack::crashed);
  error.frames = std::move(crashed == stacks.end() ? stacks.back().frames : crashed->frames);
}

NativeError read(std::span<const std::string> lines, std::size_t begin) {
  NativeError error{{lines[begin]}, {}, begin, begin + 1};
  if (is_sanitizer_report(lines[begin])) read_stack(lines, error);
  if (lines[begin].starts_with(kOfFaulthandler)) read_threads(lines, error);
  if (lines[begin].starts_with("terminate called")) read_exception(lines, error);
  if (auto said = find_nccl2_abort(lines[begin]); said != std::string::npos) error.statement[0].erase(0, said);
  return error;
}

/// Whoever says something and aborts has faulthandler behind it, unless the program went on in between.
bool is_abort_after(const NativeError& before, const NativeError& abort, std::span<const std::string> lines) {
  if (!lines[abort.begin].starts_with("Fatal Python error: Aborted")) return false;
  const auto between = lines.subspan(before.end, abort.begin - before.end);
  return std::ranges::count_if(between, [](const auto& line) { return !ends_native_message(line); }) <= kMostBetween;
}

}  // namespace

bool starts_native_error(std::string_view line) {
  constexpr std::array<std::string_view, 9> kStarts{"terminate called ",
                                                    "libc++abi: terminating",
                                                    kOfFaulthandler,
                                                    "*** stack smashing detected",
                                                    "*** buffer overflow detected",
                                                    "double free or corruption",
                                                    "free(): ",
                                                    "malloc(): ",
                                                    "corrupted size vs. prev_size"};
  bool known = std::any_of(kStarts.begin(), kStarts.end(), [&](auto start) { return line.starts_with(start); });
  return known || is_sanitizer_report(line) || is_assertion(line) || is_check_failure(line) ||
         find_nccl2_abort(line) != line.npos;
}

std::optional<NativeError> find_native_error(std::span<const std::string> lines) {
  std::optional<NativeError> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!starts_native_error(lines[i])) continue;
    auto next = read(lines, i);
    i = next.end - 1;
    if (found && is_abort_after(*found, next, lines)) {
      found->end = next.end;
      if (found->frames.empty()) found->frames = std::move(next.frames);
    } else if (!found || found->end != next.begin) {
      found = std::move(next);
    }
  }
  return found;
}

}  // namespace taas::run
