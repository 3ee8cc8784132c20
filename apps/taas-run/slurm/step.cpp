#include "slurm/step.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/text.hpp"
#include "plan/options/numbers.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

constexpr auto kQuestionPatience = std::chrono::seconds(5);

/// 0: nobody, or nobody who can be seen from here.
int parent_of(int pid) {
  const auto text = read_file(fmt::format("/proc/{}/status", pid));
  if (!text) return 0;
  constexpr std::string_view kLabel = "\nPPid:\t";
  const auto begin = text->find(kLabel);
  if (begin == std::string::npos) return 0;
  const auto rest = std::string_view(*text).substr(begin + kLabel.size());
  return plan::parse_integer(rest.substr(0, rest.find('\n'))).value_or(0);
}

/// slurmstepd, which starts a step's tasks, is called "slurmstepd: [12.0]".
bool is_below(const std::string& daemon) {
  for (int pid = ::getppid(); pid > 1; pid = parent_of(pid)) {
    const auto called = read_file(fmt::format("/proc/{}/cmdline", pid));
    if (called && called->starts_with(daemon)) return true;
  }
  return false;
}

}  // namespace

Result<> check_step(const plan::SlurmTask& task) {
  const auto id = fmt::format("{}.{}", task.job.id, task.step.id);
  if (is_below(fmt::format("slurmstepd: [{}]", id))) return {};
  std::vector<std::string> question{"env"};
  for (const auto* filter : {"ACCOUNT", "LICENSES", "NAMES", "PARTITION", "QOS", "STATES", "USERS"}) {
    question.insert(question.end(), {"-u", fmt::format("SQUEUE_{}", filter)});
  }
  question.insert(question.end(), {"squeue", "--noheader", "--format=%i", "--steps=" + id});
  const auto told = run_command(question, kQuestionPatience, Complaints::kDropped);
  const bool over = told && told->exit_code == 0 && trim(told->output).empty();
  if (!over) return {};
  return usage_error(fmt::format(
      "SLURM_JOB_ID and SLURM_STEP_ID name step {}, which is over: its other tasks will not come; --standalone trains "
      "on this machine alone",
      id));
}

}  // namespace taas::cli
