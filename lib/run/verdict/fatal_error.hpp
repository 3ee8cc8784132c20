#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run/events/events.hpp"

namespace taas::run {

/// What a rank said about its own end, from its last words and its error file.
struct FatalError {
  enum class Kind {
    kNone,    ///< nothing that is known as an error: `statement` is its last lines
    kPython,  ///< an uncaught Python exception
    kNative,  ///< an uncaught C++ exception, a sanitizer's report, an assertion …
  };
  Kind kind = Kind::kNone;
  std::vector<std::string> statement;  ///< what happened; for Python: "ValueError: bad shape", its further lines
  std::vector<std::vector<std::string>> frames;  ///< where it happened, nearest first, each of one or two lines
  bool last_words = false;                       ///< little was said after it: the program did not go on

  [[nodiscard]] bool only_lost_a_peer() const;
  [[nodiscard]] bool timed_out_in_store() const;
  [[nodiscard]] std::string text() const;  ///< the statement in one string, to look for words in
};

FatalError find_fatal_error(const Evidence& evidence);

/// At most `limit` lines that say most: the statement, and as many of the nearest frames as there is room for.
std::vector<std::string> excerpt(const FatalError& error, std::size_t limit);

}  // namespace taas::run
