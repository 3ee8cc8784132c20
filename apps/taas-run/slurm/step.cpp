#include "slurm/step.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "proc/family/descendants.hpp"
#include "proc/family/main_thread.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

constexpr auto kQuestionPatience = std::chrono::seconds(5);

/// slurmstepd, which starts a step's tasks, is called "slurmstepd: [12.0]".
bool is_below(const std::string& daemon) {
  auto process = read_process(::getppid());
  while (process && process->pid > 1) {
    const auto called = read_command_line(process->pid);
    if (!called.empty() && called.front().starts_with(daemon)) return true;
    process = read_process(process->parent);
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
