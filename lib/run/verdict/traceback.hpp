#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace taas::run {

/// One frame as it was printed, without the marks below the source line.
struct Frame {
  std::string where;   ///< `  File "train.py", line 3, in load`
  std::string source;  ///< the source line; may be empty
};

/// An uncaught Python exception as the interpreter printed it. Torch's prefix ("[rank3]: ") is removed.
struct Traceback {
  std::vector<Frame> frames;         ///< outermost first
  std::string raised;                ///< "ValueError: bad shape"
  std::vector<std::string> message;  ///< further lines of the message
  std::string prefix;                ///< "[rank3]: ", perhaps repeated, where torch has put it in front of each line
  bool of_main = true;     ///< nothing in front of it says that it is a thread's, another process', or only logged
  std::size_t begin = 0;   ///< index of its first line in what was searched
  std::size_t end = 0;     ///< ... and of the line after its last one
  bool continues = false;  ///< was raised while the one before was handled, or because of it
};

/// Every traceback in the lines that can have ended the program, oldest first: not those that Python prints for
/// exceptions that it ignores, nor those that were cut off before they named an exception.
std::vector<Traceback> find_tracebacks(std::span<const std::string> lines);

/// The frames of the user's own code when there are any, all otherwise: those nearest the raise last.
std::vector<Frame> own_frames(const Traceback& traceback);

/// This line begins what a program says of a fatal error: a traceback, an uncaught C++ exception, a sanitizer's report.
bool starts_fatal_error(std::string_view line);

bool is_blank(std::string_view line);

/// Blank lines, and the C++ stack that torch puts below a message.
bool says_nothing(std::string_view line);

/// The line without the "[rank3]: " that torch puts before each line of a traceback, once for each process group that
/// the program has made.
std::string_view without_rank_prefix(std::string_view line);

}  // namespace taas::run
