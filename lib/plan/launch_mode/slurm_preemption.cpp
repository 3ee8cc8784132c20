#include "plan/launch_mode/slurm_preemption.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "base/environment/environment.hpp"
#include "base/text.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

constexpr std::pair kFirstThatRequeues{24, 5};

/// (24, 11) of "slurm-wlm 24.11.5".
std::pair<int, int> release_of(std::string_view version) {
  auto words = split(trim(version, "\n"), ' ');
  auto numbers = split(words.back(), '.');
  if (numbers.size() < 2) return {0, 0};
  return {parse_integer(numbers[0]).value_or(0), parse_integer(numbers[1]).value_or(0)};
}

constexpr std::chrono::seconds kAboutTheLimit{60};  // SLURM looks every half minute

/// "2026-11-23T04:19:57", as if it were UTC: only differences are of interest.
std::optional<std::chrono::seconds> read_time(std::string_view text) {
  std::tm parts{};
  const char* end = ::strptime(std::string(text).c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr) return std::nullopt;
  return std::chrono::seconds(::timegm(&parts));
}

/// "1-02:03:04" or "02:03:04"; a job without a limit has a word there.
std::optional<std::chrono::seconds> read_limit(std::string_view text) {
  std::int64_t total = 0;
  auto dash = text.find('-');
  auto days = dash == text.npos ? 0 : parse_integer(text.substr(0, dash)).value_or(-1);
  auto parts = split(dash == text.npos ? text : text.substr(dash + 1), ':');
  if (days < 0 || parts.size() != 3) return std::nullopt;
  for (auto part : parts) {
    auto number = parse_integer(part);
    if (!number) return std::nullopt;
    total = total * 60 + *number;
  }
  return std::chrono::seconds(days * std::int64_t{86400} + total);
}

bool has_used_its_time(std::string_view job) {
  auto start = read_time(scontrol_value(job, "StartTime"));
  auto end = read_time(scontrol_value(job, "EndTime"));
  auto limit = read_limit(scontrol_value(job, "TimeLimit"));
  return start && end && limit && *end - *start >= *limit - kAboutTheLimit;
}

bool is_preempted(std::string_view job) {
  auto time = scontrol_value(job, "PreemptTime");
  return !time.empty() && time != "None";
}

}  // namespace

std::string_view scontrol_value(std::string_view line, std::string_view name) {
  for (auto word : split(line, ' ')) {
    auto field = split_assignment(word);
    if (field && field->first == name) return trim(field->second, "\n");
  }
  return {};
}

std::string_view scontrol_job(std::string_view lines, std::string_view job_id) {
  for (auto line : split(lines, '\n')) {
    if (scontrol_value(line, "JobId") == job_id) return line;
  }
  return {};
}

bool is_cancelled(std::string_view job) {
  auto state = scontrol_value(job, "JobState");
  bool ends = state == "CANCELLED" || state == "COMPLETING";
  return ends && !is_preempted(job) && !has_used_its_time(job);
}

bool is_requeued(std::string_view job, int restart_count) {
  auto restarts = parse_integer(scontrol_value(job, "Restarts"));
  return restarts && *restarts > restart_count;
}

bool slurm_requeues(const SlurmAnswers& answers) {
  return is_preempted(answers.job) && scontrol_value(answers.job, "Requeue") == "1" &&
         scontrol_value(answers.job, "BatchFlag") != "0" &&
         scontrol_value(answers.partition, "PreemptMode") == "REQUEUE" &&
         release_of(answers.version) >= kFirstThatRequeues;
}

}  // namespace taas::plan
