#include "plan/slurm_preemption.hpp"

#include <utility>

#include "base/text.hpp"
#include "plan/numbers.hpp"

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

bool is_preempted(std::string_view job) {
  auto time = scontrol_value(job, "PreemptTime");
  return !time.empty() && time != "None";
}

}  // namespace

std::string_view scontrol_value(std::string_view line, std::string_view name) {
  for (auto word : split(line, ' ')) {
    auto equals = word.find('=');
    if (equals != word.npos && word.substr(0, equals) == name) return trim(word.substr(equals + 1), "\n");
  }
  return {};
}

std::string_view scontrol_job(std::string_view lines, std::string_view job_id) {
  for (auto line : split(lines, '\n')) {
    if (scontrol_value(line, "JobId") == job_id) return line;
  }
  return {};
}

bool slurm_requeues(const SlurmAnswers& answers) {
  return is_preempted(answers.job) && scontrol_value(answers.job, "Requeue") == "1" &&
         scontrol_value(answers.job, "BatchFlag") != "0" &&
         scontrol_value(answers.partition, "PreemptMode") == "REQUEUE" &&
         release_of(answers.version) >= kFirstThatRequeues;
}

}  // namespace taas::plan
