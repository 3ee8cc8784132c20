#include "plan/launch_mode/job_state.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text.hpp"

namespace taas::plan {
namespace {

constexpr std::string_view kOver[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",  "FAILED",
                                      "NODE_FAIL", "REVOKED",   "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"};
constexpr std::string_view kQueued[] = {"REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"};
constexpr std::string_view kNoSuchJob = "Invalid job id";

bool is_in(const auto& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

JobPhase phase_of(std::string_view state, std::string_view reason) {
  if (is_in(kOver, state)) return JobPhase::kOver;
  if (state == "PENDING") return reason.starts_with("JobHeld") ? JobPhase::kHeld : JobPhase::kQueued;
  return is_in(kQueued, state) ? JobPhase::kQueued : JobPhase::kRuns;
}

bool is_state(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](char letter) { return (letter >= 'A' && letter <= 'Z') || letter == '_'; });
}

}  // namespace

std::vector<std::string> ask_job_state(const std::string& job_id) {
  return {"squeue", "--noheader", "--states=all", "--format=%T|%r", "--jobs=" + job_id};
}

JobState read_job_state(const std::vector<std::string>& lines) {
  for (const auto& line : lines) {
    if (contains(line, kNoSuchJob)) return {JobPhase::kOver, "GONE"};
    auto fields = split(line, '|');
    if (fields.size() != 2 || !is_state(trim(fields[0]))) continue;
    auto state = trim(fields[0]);
    return {phase_of(state, trim(fields[1])), std::string(state)};
  }
  return {};
}

}  // namespace taas::plan
