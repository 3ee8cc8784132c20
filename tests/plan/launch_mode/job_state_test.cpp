#include "plan/launch_mode/job_state.hpp"

#include "catch.hpp"

namespace job_state_test {

using namespace taas::plan;

TEST_CASE("SLURM's words for the state of a job") {
  struct Row {
    const char* line;
    JobPhase phase;
    const char* name;
  };
  const Row rows[]{
      {"PENDING|JobHeldUser", JobPhase::kHeld, "PENDING"},
      {"PENDING|JobHeldAdmin", JobPhase::kHeld, "PENDING"},
      {"PENDING|Priority", JobPhase::kQueued, "PENDING"},
      {"PENDING|BeginTime", JobPhase::kQueued, "PENDING"},
      {"REQUEUED|None", JobPhase::kQueued, "REQUEUED"},
      {"RUNNING|None", JobPhase::kRuns, "RUNNING"},
      {"CONFIGURING|None", JobPhase::kRuns, "CONFIGURING"},
      {"COMPLETING|None", JobPhase::kRuns, "COMPLETING"},
      {"COMPLETED|None", JobPhase::kOver, "COMPLETED"},
      {"CANCELLED|None", JobPhase::kOver, "CANCELLED"},
      {"TIMEOUT|TimeLimit", JobPhase::kOver, "TIMEOUT"},
      {"NODE_FAIL|None", JobPhase::kOver, "NODE_FAIL"},
      {"slurm_load_jobs error: Invalid job id specified", JobPhase::kOver, "GONE"},
      {"slurm_load_jobs error: Unable to contact slurm controller (connect failure)", JobPhase::kUnknown, ""},
      {"", JobPhase::kUnknown, ""},
  };
  for (const auto& row : rows) {
    auto state = read_job_state({row.line});
    CHECK(state.phase == row.phase);
    CHECK(state.name == row.name);
  }
}

TEST_CASE("what SLURM's command says besides is no state") {
  CHECK(read_job_state({"squeue: warning: something", "RUNNING|None"}).phase == JobPhase::kRuns);
  CHECK(read_job_state({"a|b"}).phase == JobPhase::kUnknown);
  CHECK(read_job_state({}).phase == JobPhase::kUnknown);
  CHECK(ask_job_state("17").back() == "--jobs=17");
}

}  // namespace job_state_test
