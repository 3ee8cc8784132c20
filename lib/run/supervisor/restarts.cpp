#include "run/supervisor/restarts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace taas::run {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSoon = 10s;  // after its start
constexpr Duration kFirstPause = 1s;
constexpr Duration kLongestPause = 30s;

/// A lost node that another one replaces is no failure of the program.
bool costs_a_restart(const Verdict& verdict, const GenerationRecord& record) {
  if (verdict.cause != Cause::kNodeLost) return true;
  const auto& lost = record.lost_nodes();
  return std::any_of(lost.begin(), lost.end(), [](const NodeLost& node) { return !node.replaceable; });
}

/// What an equal failure has as well; which rank was the first may change from one generation to the next.
std::string describe(const Verdict& verdict) {
  const auto& status = verdict.status;
  return fmt::format("{} {} {} {}", static_cast<int>(verdict.cause), status.code, status.signal,
                     fmt::join(verdict.detail, "\n"));
}

/// Exceptions that a program's text or its arguments cause, and that come again with them. Of all others a machine, a
/// network or a device may be the cause, in whatever library it was noticed.
bool is_of_the_program(std::string_view raised) {
  constexpr std::string_view kTypes[] = {
      "ArithmeticError",     "AssertionError", "AttributeError", "ImportError",   "IndentationError",
      "IndexError",          "KeyError",       "LookupError",    "NameError",     "ModuleNotFoundError",
      "NotImplementedError", "RecursionError", "SyntaxError",    "TabError",      "TypeError",
      "UnboundLocalError",   "ValueError",     "UnicodeError",   "OverflowError", "ZeroDivisionError",
  };
  const auto type = raised.substr(0, raised.find_first_of(":\n"));
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

}  // namespace

AfterFailure Restarts::decide(const Verdict& verdict, const GenerationRecord& record, Instant now, bool allowed) {
  const bool costs = costs_a_restart(verdict, record);
  const bool in_vain = raises_again(verdict, record);
  AfterFailure next;
  next.alike = count_alike(verdict, now);
  next.hint = verdict.hint;
  const bool possible = allowed && verdict.cause != Cause::kExecFailed && (used_ < policy_.max_restarts || !costs);
  next.restarting = possible && !in_vain;
  if (possible && in_vain) {
    next.hint =
        "not restarted: it raised the same exception at the same line twice, before any rank had reached the store";
    if (!verdict.hint.empty()) next.hint += "; " + verdict.hint;
  }
  if (!next.restarting || !costs) return next;
  next.restart = ++used_;
  next.pause = next_pause(now);
  return next;
}

bool Restarts::raises_again(const Verdict& verdict, const GenerationRecord& record) {
  const bool at_start =
      policy_.startup_needs_store && !record.store_reached() && verdict.at - started_at_ < policy_.startup_window;
  const bool certain = at_start && verdict.cause == Cause::kException && is_of_the_program(verdict.raised);
  const auto before = std::exchange(raised_, certain ? verdict.raised : std::string());
  return certain && raised_ == before;
}

int Restarts::count_alike(const Verdict& verdict, Instant now) {
  const bool soon = now - started_at_ < kSoon && verdict.cause != Cause::kNodeLost;
  const auto before = std::exchange(failure_, soon ? describe(verdict) : std::string());
  alike_ = soon && failure_ == before ? alike_ + 1 : 0;
  return alike_;
}

Duration Restarts::next_pause(Instant now) {
  const Duration lived = now - started_at_;
  if (policy_.restart_interval) return std::max(Duration{}, *policy_.restart_interval - lived);
  pause_ = lived >= kSoon ? Duration{} : std::clamp(2 * pause_, kFirstPause, kLongestPause);
  return pause_;
}

}  // namespace taas::run
