#pragma once

#include <cstddef>
#include <optional>
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
  [[nodiscard]] std::string text() const;    ///< the statement in one string, to look for words in
  [[nodiscard]] std::string raised() const;  ///< text(), and where the nearest frame was
};

FatalError find_fatal_error(const Evidence& evidence);

/// What a rank raised whose main program has ended of it, whatever its threads have said since.
FatalError find_raised(const RankLingers& lingering);

/// What a rank that has not ended shows of itself.
struct SignsOfLife {
  bool main_has_raised = false;    ///< its Python has said so
  bool would_have_said = false;    ///< ... as it would have done: what it printed proves nothing then
  bool error_is_recorded = false;  ///< it has an error file, as torch's @record writes
  bool rests = false;              ///< its main thread has not run since it was last looked at
  bool waits_for_lock = false;     ///< ... nor does it wait for anything but a lock
  Duration silent_for{};           ///< since the last byte of either stream
  std::vector<std::string> argv;   ///< of its process, as it is now
};

/// What it has come to; nothing: it may well go on. A traceback alone proves nothing, since programs print those of
/// exceptions that they have caught, and may wait for a long time for others afterwards.
std::optional<Lingering> judge_lingering(Rank rank, const Evidence& evidence, const SignsOfLife& signs);

/// At most `limit` lines that say most: the statement, and as many of the nearest frames as there is room for.
std::vector<std::string> excerpt(const FatalError& error, std::size_t limit);

}  // namespace taas::run
