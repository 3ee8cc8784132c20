#include "run/verdict/fatal_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "run/events/words.hpp"
#include "run/verdict/error_file.hpp"
#include "run/verdict/native_error.hpp"
#include "run/verdict/peer_loss.hpp"
#include "run/verdict/traceback.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxLineLength = 200;
constexpr std::size_t kMaxLinesAfter = 10;  // warnings of a shutdown; a program that goes on says more
constexpr auto kLongSilence = std::chrono::seconds(10);
constexpr std::size_t kTailLines = 3;  // of a program that says nothing we know

std::vector<std::string> statement_of(const Traceback& traceback) {
  std::vector<std::string> statement{traceback.raised};
  statement.insert(statement.end(), traceback.message.begin(), traceback.message.end());
  return statement;
}

bool only_lost_a_peer(const Traceback& traceback) {
  return tells_of_lost_peer(fmt::format("{}", fmt::join(statement_of(traceback), "\n")));
}

/// The last exception of a chain is what was raised, unless it only says that a peer went away (while cleaning up, say)
/// and one before it says more.
const Traceback& best_of_chain(const std::vector<Traceback>& found) {
  auto best = found.size() - 1;
  for (auto i = best; only_lost_a_peer(found[best]) && found[i].continues && i > 0;) {
    if (!only_lost_a_peer(found[--i])) best = i;
  }
  return found[best];
}

FatalError from_python(const std::vector<Traceback>& found) {
  const Traceback& traceback = best_of_chain(found);
  FatalError error{FatalError::Kind::kPython, statement_of(traceback), {}, true};
  auto frames = own_frames(traceback);
  std::for_each(frames.rbegin(), frames.rend(), [&](const Frame& frame) {
    error.frames.push_back({frame.where});
    if (!frame.source.empty()) error.frames.back().push_back(frame.source);
  });
  return error;
}

FatalError from_native(const NativeError& native) {
  FatalError error{FatalError::Kind::kNative, native.statement, {}, true};
  for (const auto& frame : native.frames) error.frames.push_back({frame});
  return error;
}

FatalError from_silence(const std::vector<std::string>& lines) {
  FatalError error;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(error.statement), std::not_fn(is_blank));
  return error;
}

std::optional<FatalError> from_error_file(const std::string& text) {
  auto recorded = parse_error_file(text);
  if (!recorded) return std::nullopt;
  if (auto found = find_tracebacks(recorded->callstack); !found.empty()) return from_python(found);
  return FatalError{FatalError::Kind::kPython, {recorded->message}, {}, true};
}

/// A Python exception that ends in an abort of the interpreter's shutdown is still the cause.
bool python_is_the_cause(const std::vector<Traceback>& python, const std::optional<NativeError>& native) {
  if (python.empty()) return false;
  return !native || native->begin <= python.back().end + kMaxLinesAfter;
}

bool is_last(const std::vector<std::string>& lines, std::size_t end) {
  auto after = std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(end), lines.end(), std::not_fn(says_nothing));
  return after <= static_cast<std::ptrdiff_t>(kMaxLinesAfter);
}

}  // namespace

FatalError find_fatal_error(const Evidence& evidence) {
  if (auto recorded = from_error_file(evidence.error_file)) return *recorded;
  const std::vector<std::string>& lines = evidence.last_lines;
  auto python = find_tracebacks(lines);
  auto native = find_native_error(lines);
  FatalError error;
  if (python_is_the_cause(python, native)) {
    error = from_python(python);
    error.last_words = is_last(lines, std::max(python.back().end, native ? native->end : 0));
  } else if (native) {
    error = from_native(*native);
    error.last_words = is_last(lines, native->end);
  }
  return error.last_words ? error : from_silence(lines);
}

FatalError find_raised(const RankLingers& lingering) {
  auto found = find_tracebacks(lingering.evidence.last_lines);
  bool any = std::any_of(found.begin(), found.end(), [](const Traceback& one) { return one.of_main; });
  if (any) std::erase_if(found, [](const Traceback& one) { return !one.of_main; });
  bool older = lingering.evidence.first_error_at == Instant{};  // than what it ended of, which had another form
  if (!any || older || !lingering.evidence.error_file.empty()) return find_fatal_error(lingering.evidence);
  return from_python(found);
}

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.find_last_of('/') + 1); }

/// Its outermost frame is the process' own program, and not a function that a thread runs, nor another program that the
/// process has started and that writes to the same place.
bool is_from_the_top(const Traceback& traceback, const std::vector<std::string>& argv) {
  constexpr std::string_view kBefore = "  File \"";
  if (traceback.frames.empty()) return false;
  const std::string_view where = traceback.frames.front().where;
  const bool is_module = where.ends_with("in _run_module_as_main");
  if (!is_module && !where.ends_with("in <module>")) return false;
  const auto file = where.substr(kBefore.size(), where.find("\", line ") - kBefore.size());
  return std::any_of(argv.begin(), argv.end(), [&](const std::string& word) {
    if (is_module) return word == "-m";
    return word == "-c" ? file == "<string>" : file_name(file) == file_name(word);
  });
}

bool is_of_rank(std::string_view prefix, Rank rank) {
  const auto once = fmt::format("[rank{}]: ", rank.value);
  if (!prefix.starts_with(once)) return false;
  while (prefix.starts_with(once)) prefix.remove_prefix(once.size());
  return prefix.empty();
}

}  // namespace

/// Torch puts its prefix before the lines of sys.excepthook, which Python calls for exceptions that nobody has caught.
/// A session in which somebody types commands calls it too, and so does a program that does for its threads or for what
/// it has caught: a prompt follows then, or the outermost frame is another.
std::optional<Lingering> judge_lingering(Rank rank, const Evidence& evidence, const SignsOfLife& signs) {
  if (signs.main_has_raised) return Lingering::kFailed;
  if (!signs.rests) return std::nullopt;
  auto found = find_tracebacks(evidence.last_lines);
  bool last = !found.empty() && found.back().of_main && find_fatal_error(evidence).kind == FatalError::Kind::kPython;
  if (!last) return std::nullopt;
  bool by_hook = is_of_rank(found.back().prefix, rank);
  bool nothing_since = std::all_of(evidence.last_lines.begin() + static_cast<std::ptrdiff_t>(found.back().end),
                                   evidence.last_lines.end(), says_nothing);
  bool told = (by_hook && nothing_since) || signs.error_is_recorded;
  bool certain = told && signs.waits_for_lock && !signs.would_have_said && is_from_the_top(found.back(), signs.argv);
  if (certain) return Lingering::kFailed;
  return signs.silent_for >= kLongSilence ? std::optional(Lingering::kSilent) : std::nullopt;
}

std::string FatalError::text() const {
  auto known = kind == Kind::kNone ? std::min(statement.size(), kTailLines) : statement.size();
  return fmt::format("{}", fmt::join(statement.end() - static_cast<std::ptrdiff_t>(known), statement.end(), "\n"));
}

std::string FatalError::raised() const { return frames.empty() ? text() : text() + "\n" + frames.front().front(); }

bool FatalError::only_lost_a_peer() const { return tells_of_lost_peer(text()) || timed_out_in_store(); }

bool FatalError::timed_out_in_store() const { return tells_of_store_timeout(text()); }

namespace {

/// As many of the nearest frames as fit, never half of one.
std::size_t frames_that_fit(const FatalError& error, std::size_t room) {
  std::size_t count = 0;
  for (; count < error.frames.size() && error.frames[count].size() <= room; ++count) room -= error.frames[count].size();
  return count;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& lines) {
  to.insert(to.end(), lines.begin(), lines.end());
}

}  // namespace

/// Python prints the nearest frame last, above the exception; native reports print it first, below what happened.
std::vector<std::string> excerpt(const FatalError& error, std::size_t limit) {
  bool python = error.kind == FatalError::Kind::kPython;
  bool tail = error.kind == FatalError::Kind::kNone;
  auto nearest = error.frames.empty() ? 0 : error.frames.front().size();
  auto size = std::min(error.statement.size(), limit - std::min(nearest, limit - 1));
  std::vector<std::string> statement(
      tail ? error.statement.end() - static_cast<std::ptrdiff_t>(size) : error.statement.begin(),
      tail ? error.statement.end() : error.statement.begin() + static_cast<std::ptrdiff_t>(size));
  auto count = frames_that_fit(error, limit - size);
  std::vector<std::string> lines;
  if (!python) append(lines, statement);
  for (std::size_t i = 0; i < count; ++i) append(lines, error.frames[python ? count - 1 - i : i]);
  if (python) append(lines, statement);
  for (auto& line : lines) line = shorten(line, kMaxLineLength);
  return lines;
}

}  // namespace taas::run
