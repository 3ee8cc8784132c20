#include "slurm/requeue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "plan/launch_mode/slurm_preemption.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

constexpr auto kScontrolPatience =
    std::chrono::minutes(2);  // scontrol itself tries for that long where slurmctld is away

/// What goes wrong in scontrol, it says itself.
Result<std::string> tell(const std::vector<std::string>& command) {
  return output_of(command, kScontrolPatience, Complaints::kShown);
}

/// Empty when there is no answer.
std::string answer(const std::vector<std::string>& command) {
  auto text = tell(command);
  return text ? std::move(*text) : std::string();
}

/// A job that is preempted would run twice: SLURM from 24.05 on puts it back into the queue when its script ends, and
/// again at the end of the next start if it was put back by scontrol in between.
bool slurm_requeues(std::string job) {
  plan::SlurmAnswers answers;
  answers.job = std::move(job);
  if (answers.job.empty()) return false;
  std::string partition(plan::scontrol_value(answers.job, "Partition"));
  answers.partition = answer({"scontrol", "show", "partition", "--oneliner", partition});
  answers.version = answer({"scontrol", "--version"});
  return plan::slurm_requeues(answers);
}

}  // namespace

void requeue(const std::string& job_id, int restart_count) {
  std::string job(plan::scontrol_job(answer({"scontrol", "show", "job", "--oneliner", job_id}), job_id));
  if (plan::is_requeued(job, restart_count) || plan::is_cancelled(job) || slurm_requeues(job)) return;
  if (auto done = tell({"scontrol", "requeue", job_id}); !done) {
    fmt::print(stderr, "taas-run: job {} could not be put back into the queue: {}\n", job_id, done.error().message);
  }
}

}  // namespace taas::cli
