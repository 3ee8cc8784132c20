#include "plan/launch_mode/slurm.hpp"

#include "catch.hpp"
#include "plan/slurm_environment.hpp"

namespace slurm_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Names = std::vector<std::string>;

SlurmJob job_of(const SlurmEnvironment& environment) {
  auto job = read_slurm(environment);
  if (!job) FAIL(job.error().message);
  REQUIRE(job->has_value());
  return **job;
}

SlurmEnvironment with(SlurmEnvironment environment, const SlurmEnvironment& more) {
  for (const auto& [name, value] : more) environment[name] = value;
  return environment;
}

}  // namespace

TEST_CASE("outside of a job there is none") {
  CHECK_FALSE(read_slurm({}).value().has_value());
  CHECK_FALSE(read_slurm({{"SLURM_JOB_ID", ""}}).value().has_value());
  CHECK_FALSE(read_slurm({{"SLURM_CONF", "/etc/slurm.conf"}, {"SLURM_CPUS_ON_NODE", "4"}}).value().has_value());
  CHECK_FALSE(read_slurm({{"SLURM_JOB_ID", "17"}}).value().has_value());  // no nodes: nothing to run on
}

TEST_CASE("a batch script is in an allocation, though it has a SLURM_PROCID") {
  auto job = job_of(batch_script());
  CHECK(job.id == "17");
  CHECK(job.nodes == Names{"g0", "g1", "g2", "g3"});
  CHECK(job.tasks_on_node == std::vector<int>{1, 1, 1, 1});
  CHECK(job.gpus_on_node == 8);
  CHECK(job.this_node == "g0");
  CHECK(job.restart_count == 0);
  CHECK_FALSE(job.end_time);
  CHECK_FALSE(job.step);
  CHECK(job.groups.empty());
}

TEST_CASE("a task of a step knows its place") {
  auto job = job_of(task_of_step(2));
  REQUIRE(job.step);
  CHECK(job.step->id == "0");
  CHECK(job.step->nodes == Names{"g0", "g1", "g2", "g3"});
  CHECK(job.step->tasks_on_node == std::vector<int>{1, 1, 1, 1});
  CHECK(job.step->node_id == 2);
  CHECK(job.step->proc_id == 2);
  CHECK(job.step->local_id == 0);
}

TEST_CASE("a step's own nodes and tasks win over the job's") {
  auto job = job_of(with(task_of_step(1), {{"SLURM_STEP_NODELIST", "g[2-3]"},
                                           {"SLURM_STEP_TASKS_PER_NODE", "8(x2)"},
                                           {"SLURM_TASKS_PER_NODE", "8(x2)"},
                                           {"SLURM_PROCID", "11"},
                                           {"SLURM_LOCALID", "3"}}));
  CHECK(job.nodes.size() == 4);
  REQUIRE(job.step);
  CHECK(job.step->nodes == Names{"g2", "g3"});
  CHECK(job.step->tasks_on_node == std::vector<int>{8, 8});
  CHECK(job.step->node_id == 1);
  CHECK(job.step->local_id == 3);
  CHECK(job.step->proc_id == 11);
}

TEST_CASE("SLURM's own steps are no steps of the user") {
  for (auto id : {"4294967290", "4294967291", "4294967292"}) {  // interactive, batch, extern
    CHECK_FALSE(job_of(with(task_of_step(0), {{"SLURM_STEP_ID", id}})).step);
  }
  CHECK(job_of(with(task_of_step(0), {{"SLURM_STEP_ID", ""}, {"SLURM_STEPID", "3"}})).step);
}

TEST_CASE("GPUs are counted from what SLURM says, else from the visible devices") {
  auto gpus = [](const SlurmEnvironment& more) { return job_of(with(batch_script(), more)).gpus_on_node; };
  CHECK(gpus({{"SLURM_GPUS_ON_NODE", "gpu:4"}}) == 4);
  CHECK(gpus({{"SLURM_GPUS_ON_NODE", ""}, {"CUDA_VISIBLE_DEVICES", "0,1,2"}}) == 3);
  CHECK(gpus({{"SLURM_GPUS_ON_NODE", "a100:4,v100:2"}}) == 6);
  // The shell of salloc is on no node of the job: its devices are not theirs.
  CHECK(gpus({{"SLURMD_NODENAME", ""}, {"SLURM_GPUS_ON_NODE", ""}, {"SLURM_GPUS_PER_NODE", "a100:4"}}) == 4);
  CHECK(gpus({{"SLURMD_NODENAME", ""}, {"SLURM_GPUS_ON_NODE", ""}, {"SLURM_GPUS_PER_NODE_HET_GROUP_0", "4"}}) == 4);
  CHECK(gpus({{"SLURMD_NODENAME", ""}, {"SLURM_GPUS_ON_NODE", ""}, {"CUDA_VISIBLE_DEVICES", "0,1"}}) == 0);
  for (auto none : {"", "NoDevFiles", "-1"}) {
    CHECK(gpus({{"SLURM_GPUS_ON_NODE", ""}, {"CUDA_VISIBLE_DEVICES", none}}) == 0);
  }
}

TEST_CASE("restarts and the end are read") {
  auto job = job_of(with(batch_script(), {{"SLURM_RESTART_COUNT", "2"}, {"SLURM_JOB_END_TIME", "1800000000"}}));
  CHECK(job.restart_count == 2);
  CHECK(job.end_time == 1800000000);
}

TEST_CASE("the groups of a heterogeneous job are read by both of their names") {
  for (std::string word : {"HET", "PACK"}) {
    CAPTURE(word);
    auto job = job_of(with(batch_script(), {{"SLURM_" + word + "_SIZE", "2"},
                                            {"SLURM_JOB_ID_" + word + "_GROUP_0", "17"},
                                            {"SLURM_JOB_ID_" + word + "_GROUP_1", "18"},
                                            {"SLURM_JOB_NODELIST_" + word + "_GROUP_0", "g[0-1]"},
                                            {"SLURM_JOB_NODELIST_" + word + "_GROUP_1", "c[0-2]"}}));
    REQUIRE(job.groups.size() == 2);
    CHECK(job.groups[1].job_id == "18");
    CHECK(job.groups[1].nodes == Names{"c0", "c1", "c2"});
    CHECK(job.nodes == Names{"g0", "g1"});
    CHECK(job.tasks_on_node.size() == 2);
  }
}

TEST_CASE("a step over several groups numbers its nodes group by group, though it lists them by name") {
  auto job = job_of(with(task_of_step(1), {{"SLURM_STEP_NODELIST", "c[0-1],g[0-1]"},
                                           {"SLURM_JOB_NODELIST", "c[0-1],g[0-1]"},
                                           {"SLURM_HET_SIZE", "2"},
                                           {"SLURM_JOB_NODELIST_PACK_GROUP_0", "g[0-1]"},
                                           {"SLURM_JOB_NODELIST_PACK_GROUP_1", "c[0-1]"}}));
  REQUIRE(job.step);
  CHECK(job.step->nodes == Names{"g0", "g1", "c0", "c1"});
  CHECK(job.step->node_id == 1);
  CHECK(job.nodes == Names{"g0", "g1"});
}

TEST_CASE("what is wrong is named by its variable") {
  struct Row {
    SlurmEnvironment more;
    const char* message;
  };
  const Row rows[] = {
      {{{"SLURM_JOB_NODELIST", "g[0-"}}, "SLURM_JOB_NODELIST: g[0-: a [ without its ]"},
      {{{"SLURM_STEP_NODELIST", "a,,b"}}, "SLURM_STEP_NODELIST: a,,b: an empty entry in the list of nodes"},
      {{{"SLURM_STEP_TASKS_PER_NODE", "x"}}, "SLURM_STEP_TASKS_PER_NODE: x: not numbers of tasks, such as 2(x3),1"},
      {{{"SLURM_STEP_TASKS_PER_NODE", "1(x3)"}},
       "SLURM_STEP_TASKS_PER_NODE=1(x3): 3 nodes, and the list of nodes has 4"},
      {{{"SLURM_NODEID", "4"}}, "SLURM_NODEID=4: there are 4"},
      {{{"SLURM_LOCALID", "-1"}}, "SLURM_LOCALID=-1: not a number"},
      {{{"SLURM_GPUS_ON_NODE", "many"}}, "SLURM_GPUS_ON_NODE=many: not a number of GPUs"},
      {{{"SLURM_RESTART_COUNT", "x"}}, "SLURM_RESTART_COUNT=x: not a number"},
      {{{"SLURM_STEP_ID", "x"}}, "SLURM_STEP_ID=x: not a number"},
      {{{"SLURM_HET_SIZE", "100000"}}, "SLURM_HET_SIZE=100000: too many groups"},
  };
  for (const auto& row : rows) {
    auto job = read_slurm(with(task_of_step(0), row.more));
    REQUIRE(job.has_error());
    CHECK(job.error().message == row.message);
  }
}

}  // namespace slurm_test
