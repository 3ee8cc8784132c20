#include "plan/launch_mode/slurm_preemption.hpp"

#include "catch.hpp"

using namespace taas::plan;

namespace {

SlurmAnswers preempted() {
  return {.job =
              "JobId=17 JobName=train.sh Requeue=1 Restarts=0 BatchFlag=1 PreemptEligibleTime=2026-11-22T14:51:23 "
              "PreemptTime=2026-11-22T14:51:24 Partition=main\n",
          .partition = "PartitionName=main GraceTime=10 PreemptMode=REQUEUE State=UP\n",
          .version = "slurm-wlm 24.11.5\n"};
}

}  // namespace

TEST_CASE("a value of scontrol's is found by its whole name") {
  CHECK(scontrol_value("PreemptEligibleTime=now PreemptTime=None Partition=main\n", "PreemptTime") == "None");
  CHECK(scontrol_value("PreemptTime=None Partition=main\n", "Partition") == "main");
  CHECK(scontrol_value("Comment=a=b Partition=main", "Comment") == "a=b");
  CHECK(scontrol_value("Partition=main", "Part").empty());
  CHECK(scontrol_value("", "Partition").empty());
}

TEST_CASE("a job is found among the tasks of its array") {
  const char* lines =
      "JobId=18 ArrayJobId=17 ArrayTaskId=0 Restarts=1\n\nJobId=17 ArrayJobId=17 ArrayTaskId=1 Restarts=0\n";
  CHECK(scontrol_value(scontrol_job(lines, "17"), "Restarts") == "0");
  CHECK(scontrol_value(scontrol_job(lines, "18"), "Restarts") == "1");
  CHECK(scontrol_job(lines, "1").empty());
  CHECK(scontrol_job("", "17").empty());
}

TEST_CASE("a job that somebody cancels is told from one that is preempted or has used its time") {
  const std::string times = " StartTime=2026-11-23T04:19:56 TimeLimit=01:00:00";
  const std::string early = times + " EndTime=2026-11-23T04:19:57";
  const std::string late = times + " EndTime=2026-11-23T05:20:10";
  CHECK(is_cancelled("JobId=17 JobState=COMPLETING PreemptTime=None" + early));
  CHECK(is_cancelled("JobId=17 JobState=CANCELLED" + early));
  const std::string times_of_day = " StartTime=2026-11-23T04:19:56 EndTime=2026-11-23T05:20:10 TimeLimit=";
  CHECK(is_cancelled("JobId=17 JobState=CANCELLED" + times_of_day + "UNLIMITED"));
  CHECK(is_cancelled("JobId=17 JobState=CANCELLED" + times_of_day + "1-01:00:00"));
  CHECK_FALSE(is_cancelled("JobId=17 JobState=COMPLETING PreemptTime=None" + late));
  CHECK_FALSE(is_cancelled("JobId=17 JobState=COMPLETING PreemptTime=2026-11-23T04:19:57" + early));
  CHECK_FALSE(is_cancelled("JobId=17 JobState=RUNNING PreemptTime=None" + late));
  CHECK_FALSE(is_cancelled(""));
}

TEST_CASE("a job that is back in the queue has started more often than this start knows of") {
  CHECK(is_requeued("JobId=17 JobState=PENDING Restarts=1 BatchFlag=1", 0));
  CHECK(is_requeued("JobId=17 JobState=COMPLETING Restarts=3 BatchFlag=1", 2));
  CHECK_FALSE(is_requeued("JobId=17 JobState=RUNNING Restarts=1 BatchFlag=1", 1));
  CHECK_FALSE(is_requeued("", 0));
}

TEST_CASE("SLURM requeues a batch job whose script ends while it is preempted") {
  CHECK(slurm_requeues(preempted()));

  auto answers = preempted();
  answers.job = "JobId=17 Requeue=1 BatchFlag=1 PreemptTime=None Partition=main\n";
  CHECK_FALSE(slurm_requeues(answers));  // scancel, or the time limit
  answers.job = "JobId=17 Requeue=0 BatchFlag=1 PreemptTime=2026-11-22T14:51:24 Partition=main\n";
  CHECK_FALSE(slurm_requeues(answers));  // sbatch --no-requeue
  answers.job = "JobId=17 Requeue=1 BatchFlag=0 PreemptTime=2026-11-22T14:51:24 Partition=main\n";
  CHECK_FALSE(slurm_requeues(answers));  // salloc, srun
  answers.job.clear();
  CHECK_FALSE(slurm_requeues(answers));  // no answer
}

TEST_CASE("SLURM does not requeue where preemption cancels") {
  auto answers = preempted();
  answers.partition = "PartitionName=main PreemptMode=CANCEL\n";
  CHECK_FALSE(slurm_requeues(answers));
}

TEST_CASE("SLURM requeues what ends in its grace time from 24.05 on") {
  auto answers = preempted();
  for (const char* version : {"slurm 24.05.0", "slurm 24.11.5-1\n", "slurm-wlm 25.05.3\n", "slurm 100.02.0"}) {
    answers.version = version;
    CHECK(slurm_requeues(answers));
  }
  for (const char* version : {"slurm-wlm 22.05.8\n", "slurm 23.11.10", "slurm 24.04.1", "slurm", "", "not found"}) {
    answers.version = version;
    CHECK_FALSE(slurm_requeues(answers));
  }
}
