#include "plan/sizes/slurm_gpus.hpp"

#include "catch.hpp"
#include "plan/slurm_environment.hpp"

namespace slurm_gpus_test {

using namespace taas::plan;

namespace {

using Gpus = std::map<std::string, int>;

SlurmJob job_of(const SlurmEnvironment& environment) { return read_slurm(environment).value().value(); }

}  // namespace

TEST_CASE("scontrol tells the GPUs of each node of a job") {
  struct Row {
    const char* text;
    Gpus expected;
  };
  const Row rows[] = {
      {"JobId=17 NodeList=g0,h0 NumNodes=2 JOB_GRES=gpu:12   Nodes=g0 CPU_IDs=0 Mem=0 GRES=gpu:8(IDX:0-7)   Nodes=h0 "
       "CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3) MinCPUsNode=1 TresPerJob=gres:gpu:12 \n",
       {{"g0", 8}, {"h0", 4}}},
      {"Nodes=g[0-1] CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)\n", {{"g0", 2}, {"g1", 2}}},
      {"Nodes=g0 Mem=0 GRES=gpu:a100:4(IDX:0,2,4,6),gpu:v100:2(IDX:1,3),nic:1(IDX:0)\n", {{"g0", 6}}},
      {"JobId=17 Nodes=g0 GRES=gpu:8(IDX:0-7)\nJobId=18 Nodes=c0 CPU_IDs=0 Mem=0 GRES= \n", {{"g0", 8}, {"c0", 0}}},
      {"Nodes=g0 GRES=gpus:8,gpu:x\n", {{"g0", 0}}},
      {"Nodes=g[0- GRES=gpu:8\n", {}},
      {"slurm_load_jobs error: Invalid job id specified\n", {}},
      {"", {}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    CHECK(gpus_by_node(row.text) == row.expected);
  }
}

TEST_CASE("SLURM is asked where nodes may differ and the plan depends on it") {
  CHECK(needs_gpus_by_node({}, job_of(batch_script())));
  CHECK(needs_gpus_by_node({}, job_of(task_of_step(0))));
  CHECK_FALSE(needs_gpus_by_node({}, job_of(task_of_step(1))));  // not once for each node of a large job
  auto other_task = task_of_step(0);
  other_task["SLURM_LOCALID"] = "1";
  CHECK_FALSE(needs_gpus_by_node({}, job_of(other_task)));
  auto even = batch_script();
  even["SLURM_GPUS_PER_NODE"] = "8";
  CHECK_FALSE(needs_gpus_by_node({}, job_of(even)));
  auto alone = batch_script();
  alone["SLURM_JOB_NODELIST"] = "g0";
  alone["SLURM_TASKS_PER_NODE"] = "1";
  CHECK_FALSE(needs_gpus_by_node({}, job_of(alone)));
  auto without = batch_script();
  without["SLURM_GPUS_ON_NODE"] = "0";
  CHECK_FALSE(needs_gpus_by_node({}, job_of(without)));
  without.erase("SLURMD_NODENAME");  // the shell of salloc is not told
  CHECK(needs_gpus_by_node({}, job_of(without)));
  Options elsewhere;
  elsewhere.nodes.hosts = "a,b";
  CHECK_FALSE(needs_gpus_by_node(elsewhere, job_of(batch_script())));
}

}  // namespace slurm_gpus_test
