#include "run/supervisor/restarts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/text.hpp"

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

/// As far as another failure can equal it: whichever rank was the first, that may change from one generation to the
/// next. Empty: none can.
std::string describe(const Verdict& verdict) {
  if (verdict.cause == Cause::kNodeLost) return {};
  const auto& status = verdict.status;
  return fmt::format("{} {} {} {}", static_cast<int>(verdict.cause), status.code, status.signal, verdict.raised);
}

/// What the machine, a network or a device refused, as CUDA's "devices are busy".
bool may_pass(std::string_view raised) {
  constexpr std::string_view kTypes[] = {
      "OSError",           "IOError",         "TimeoutError",      "PermissionError",    "InterruptedError",
      "FileNotFoundError", "FileExistsError", "IsADirectoryError", "NotADirectoryError", "BlockingIOError",
      "ConnectionError",   "BrokenPipeError", "ChildProcessError", "ProcessLookupError", "ConnectionResetError",
      "URLError",          "HTTPError",       "AcceleratorError",  "OutOfMemoryError",   "ConnectionRefusedError",
      "gaierror",          "timeout",         "DistNetworkError",  "DistStoreError",     "ConnectionAbortedError",
      "SSLError",          "MaxRetryError",
  };
  auto type = raised.substr(0, raised.find_first_of(":\n"));
  type = type.substr(type.rfind('.') + 1);
  const bool listed = std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
  return listed || contains(raised, "[Errno ") || contains(raised, "CUDA");
}

}  // namespace

AfterFailure Restarts::decide(const Verdict& verdict, const GenerationRecord& record, Instant now, bool allowed) {
  auto failure = now - started_at_ < policy_.startup_window ? describe(verdict) : std::string();
  alike_ = !failure.empty() && failure == failure_ ? alike_ + 1 : 0;
  failure_ = std::move(failure);
  const bool costs = costs_a_restart(verdict, record);
  allowed = allowed && verdict.cause != Cause::kExecFailed && (used_ < policy_.max_restarts || !costs);
  const bool in_vain = allowed && fails_again(verdict, record);
  AfterFailure next{allowed && !in_vain, 0, {}, alike_, verdict.hint};
  if (in_vain) {
    next.hint =
        "not restarted: it raised the same exception at the same line twice, before any rank had reached the store";
    if (!verdict.hint.empty()) next.hint += "; " + verdict.hint;
  }
  if (!next.restarting || !costs) return next;
  next.restart = ++used_;
  next.pause = next_pause(now);
  return next;
}

bool Restarts::fails_again(const Verdict& verdict, const GenerationRecord& record) const {
  const bool at_start = policy_.startup_needs_store && !record.store_reached();
  return at_start && alike_ > 0 && verdict.cause == Cause::kException && !may_pass(verdict.raised);
}

Duration Restarts::next_pause(Instant now) {
  const Duration lived = now - started_at_;
  if (policy_.restart_interval) return std::max(Duration{}, *policy_.restart_interval - lived);
  pause_ = lived >= kSoon ? Duration{} : std::clamp(2 * pause_, kFirstPause, kLongestPause);
  return pause_;
}

}  // namespace taas::run
