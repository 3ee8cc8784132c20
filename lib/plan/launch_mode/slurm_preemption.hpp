#pragma once

#include <string>
#include <string_view>

namespace taas::plan {

/// The value of `name` in what `scontrol show --oneliner` prints: "JobId=17 JobName=train …". Empty when it is not
/// there.
std::string_view scontrol_value(std::string_view line, std::string_view name);

/// The line about one job: an array shows all of its tasks under the number of one of them. Empty when it is not there.
std::string_view scontrol_job(std::string_view lines, std::string_view job_id);

/// What scontrol says about a job, its partition, and itself.
struct SlurmAnswers {
  std::string job;        ///< of: scontrol show job --oneliner
  std::string partition;  ///< of: scontrol show partition --oneliner
  std::string version;    ///< of: scontrol --version
};

/// What `scontrol show job --oneliner` says of a job that somebody cancels: it ends, but neither for another job nor
/// because its time is over.
bool is_cancelled(std::string_view job);

/// True for a job that has been put back into the queue since its start number `restart_count`, as by `scontrol
/// requeue`.
bool is_requeued(std::string_view job, int restart_count);

/// True for a batch job that is being preempted and that SLURM itself puts back into the queue when its script ends.
/// SLURM does so from 24.05 on; before, only a job that outlasted its grace time was put back.
bool slurm_requeues(const SlurmAnswers& answers);

}  // namespace taas::plan
