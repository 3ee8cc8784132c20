#include "plan/sizes/node_counts.hpp"

#include "catch.hpp"
#include "plan/slurm_environment.hpp"

namespace node_counts_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Counts = std::vector<int>;
using Text = std::optional<std::string>;
using Number = std::optional<int>;

Options size(Number gpus, Number gpus_per_node = {}, Text nnodes = {}, Text nproc_per_node = {}, int spares = 0) {
  Options options;
  options.size = {gpus, gpus_per_node, std::move(nnodes), std::move(nproc_per_node), false};
  options.nodes.spares = spares;
  return options;
}

LaunchMode over_ssh(const std::string& list) { return OverSsh{parse_hosts(list).value()}; }
LaunchMode join(int least, int most) { return Join{"h", 1, {}, {}, "", least, most}; }
LaunchMode step(SlurmEnvironment environment) {
  auto job = read_slurm(environment).value().value();
  return SlurmTask{job, *job.step};
}
LaunchMode allocation(const SlurmEnvironment& environment) {
  return SlurmAllocation{read_slurm(environment).value().value()};
}

Options hosts(Options options) {
  options.nodes.hosts = "…";  // the way has them
  return options;
}

const Machine kMachine{"here", 0, 4, {}};

/// The machine of a launcher that has asked SLURM.
Machine in_a_job(std::map<std::string, int> gpus) {
  auto machine = kMachine;
  machine.job_gpus = std::move(gpus);
  return machine;
}

NodeCounts counts_of(const Options& options, const LaunchMode& mode, const Machine& machine = kMachine) {
  auto counts = decide_node_counts(options, mode, machine);
  if (!counts) FAIL(counts.error().message);
  return *counts;
}

std::string error_of(const Options& options, const LaunchMode& mode) {
  auto counts = decide_node_counts(options, mode, kMachine);
  REQUIRE(counts.has_error());
  CHECK(counts.error().code == ErrorCode::kUsage);
  return counts.error().message;
}

}  // namespace

TEST_CASE("a shell of salloc that knows no number of GPUs says what it takes instead") {
  SlurmEnvironment shell{{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NODELIST", "g[0-1]"}, {"SLURM_TASKS_PER_NODE", "1(x2)"}};
  auto told = [&] { return counts_of(size({}), allocation(shell)).notices.back(); };
  CHECK(told().starts_with("job 17 does not say here how many GPUs its nodes have: one rank on each"));
  CHECK(told().find("--gpus-per-node N (not --gres)") != std::string::npos);
  CHECK(counts_of(size({}, {}, {}, "2"), allocation(shell)).notices.size() == 1);
  shell["SLURMD_NODENAME"] = "g0";  // a node knows what it has
  CHECK(told().starts_with("2 ranks on 2 nodes"));
}

TEST_CASE("ranks are given to as many hosts as they need, in order") {
  struct Row {
    Options options;
    const char* list;
    Counts expected;
  };
  const Row rows[] = {
      {size(32), "a,b,c,d", {8, 8, 8, 8}},
      {size(8), "a,b,c,d", {8}},
      {size(9), "a,b", {5, 4}},
      {size(12), "a,b:8", {6, 6}},
      {size(4), "a:2,b:2", {2, 2}},
      {size(10), "a:2,b:8", {2, 8}},
      {size(9), "a:2,b:8,c:8", {2, 7}},
      {size(9), "a:8,b:2,c:8", {7, 2}},
      {size(16, 4), "a,b,c,d", {4, 4, 4, 4}},
      {size(8, 4), "a:2,b,c", {2, 3, 3}},
      {size({}), "a:2,b:8", {2, 8}},
      {size({}, {}, {}, "2"), "a,b,c", {2, 2, 2}},
      {size({}, 4), "a:2,b", {2, 4}},
      {size({}, {}, "2"), "a:2,b:8,c:8", {2, 8}},
      {size({}, {}, "2", "3"), "a,b,c", {3, 3}},
      {size(4, {}, "4"), "a,b,c,d", {1, 1, 1, 1}},
      {size(9, {}, "2"), "a:8,b:8", {5, 4}},
      {size(16, {}, {}, "4"), "a,b,c,d,e", {4, 4, 4, 4}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.list, row.options.size.gpus.value_or(-1));
    auto counts = counts_of(hosts(row.options), over_ssh(row.list));
    CHECK(counts.ranks_on_node == row.expected);
    CHECK(counts.min_nodes == static_cast<int>(row.expected.size()));
    CHECK(counts.expected_agents == counts.min_nodes);
    CHECK(counts.device == Device::kGpu);
  }
}

TEST_CASE("further hosts stand by when asked to, and are named when not needed") {
  auto counts = counts_of(hosts(size(16, {}, {}, {}, 1)), over_ssh("a,b,c,d"));
  CHECK(counts.ranks_on_node == Counts{8, 8});
  CHECK(counts.spares == 1);
  CHECK(counts.expected_agents == 3);
  CHECK(counts.notices ==
        std::vector<std::string>{"16 ranks on 2 nodes of --hosts, and 1 spare",
                                 "not needed: d (--nnodes spreads ranks over more nodes, --spares keeps some ready)"});
  counts = counts_of(hosts(size({}, {}, {}, "2", 1)), over_ssh("a,b,c"));  // of all hosts one stands by
  CHECK(counts.ranks_on_node == Counts{2, 2});
  CHECK(counts.notices == std::vector<std::string>{"4 ranks on 2 nodes of --hosts, and 1 spare"});
  CHECK(counts_of(hosts(size(8)), over_ssh("a,b,c,d,e,f,g,h,i,j"))
            .notices.at(1)
            .starts_with("not needed: b, c, d, e, f, g, h, i, … ("));
}

TEST_CASE("nodes of a range are equal") {
  auto counts = counts_of(hosts(size({}, {}, "2:4", "8")), over_ssh("a,b,c,d"));
  CHECK(counts.ranks_on_node == Counts{8, 8, 8, 8});
  CHECK(counts.min_nodes == 2);
  CHECK(counts.expected_agents == 4);
  CHECK(counts.notices == std::vector<std::string>{"32 ranks on 2 to 4 nodes of --hosts"});
  CHECK(counts_of(hosts(size(8, {}, "1:4")), over_ssh("a,b,c,d")).ranks_on_node == Counts{2, 2, 2, 2});
  CHECK(counts_of(hosts(size({}, {}, "1:2")), over_ssh("a:4,b:8")).ranks_on_node == Counts{4, 4});
  CHECK(error_of(hosts(size(9, {}, "2:4")), over_ssh("a,b,c,d")) ==
        "--gpus 9 is not a multiple of 4: the nodes of a range are equal");
}

TEST_CASE("nodes that join are counted by torchrun's flags, and are like this one") {
  CHECK(counts_of(size({}, {}, "4", "2"), join(4, 4)).ranks_on_node == Counts{2, 2, 2, 2});
  CHECK(counts_of(size({}, {}, "2"), join(2, 2)).ranks_on_node == Counts{1, 1});
  CHECK(counts_of(size({}, {}, "2"), join(2, 2), {"here", 4, 8, {}}).ranks_on_node == Counts{4, 4});
  CHECK(counts_of(size({}, {}, "2", "gpu"), join(2, 2), {"here", 4, 8, {}}).ranks_on_node == Counts{4, 4});
  CHECK(counts_of(size(16), join(2, 2)).ranks_on_node == Counts{8, 8});
  CHECK(counts_of(size(32), join(2, 2), {"here", 16, 8, {}}).ranks_on_node == Counts{16, 16});
  auto cpu = counts_of(size({}, {}, "2", "cpu"), join(2, 2));
  CHECK(cpu.ranks_on_node == Counts{4, 4});
  CHECK(cpu.device == Device::kCpu);
  auto elastic = counts_of(size({}, {}, "1:3", "2", 2), join(1, 3));
  CHECK(elastic.ranks_on_node == Counts{2, 2, 2});
  CHECK(elastic.min_nodes == 1);
  CHECK(elastic.spares == 2);
  CHECK(elastic.expected_agents == 5);
}

TEST_CASE("SLURM's GPUs count where nothing was said, and its tasks where there are none") {
  CHECK(counts_of(size({}), step(task_of_step(0))).ranks_on_node == Counts{8, 8, 8, 8});
  CHECK(counts_of(size({}), allocation(batch_script())).ranks_on_node == Counts{8, 8, 8, 8});
  CHECK(counts_of(size(16), step(task_of_step(0))).ranks_on_node == Counts{8, 8});
  CHECK(counts_of(size({}, {}, {}, "gpu"), step(task_of_step(0))).ranks_on_node == Counts{8, 8, 8, 8});
  auto four = task_of_step(0);
  four["SLURM_GPUS_ON_NODE"] = "4";
  CHECK(counts_of(size(16), step(four)).ranks_on_node == Counts{4, 4, 4, 4});
  auto cpu = task_of_step(0);
  cpu["SLURM_GPUS_ON_NODE"] = "0";
  CHECK(counts_of(size({}), step(cpu)).ranks_on_node == Counts{1, 1, 1, 1});
  CHECK(counts_of(size(32), step(cpu)).ranks_on_node == Counts{8, 8, 8, 8});
  cpu["SLURM_STEP_TASKS_PER_NODE"] = "3(x3),2";
  CHECK(counts_of(size({}), step(cpu)).ranks_on_node == Counts{3, 3, 3, 2});
  CHECK(counts_of(size(6), step(cpu)).ranks_on_node == Counts{3, 3});
}

TEST_CASE("each node of a job gets as many ranks as SLURM says it has GPUs") {
  auto uneven = batch_script();
  uneven["SLURM_JOB_NODELIST"] = "g0,h0";
  uneven["SLURM_TASKS_PER_NODE"] = "1(x2)";
  const auto asked = in_a_job({{"g0", 8}, {"h0", 4}});
  auto counts = [&](const Options& options) { return counts_of(options, allocation(uneven), asked).ranks_on_node; };
  CHECK(counts(size({})) == Counts{8, 4});
  CHECK(counts(size(12)) == Counts{8, 4});
  CHECK(counts(size(12, {}, "2")) == Counts{8, 4});
  CHECK(counts(size(10, {}, "2")) == Counts{6, 4});
  CHECK(counts(size({}, {}, "2")) == Counts{8, 4});
  CHECK(counts(size({}, {}, {}, "gpu")) == Counts{8, 4});
  CHECK(counts(size({}, {}, {}, "auto")) == Counts{8, 4});
  CHECK(counts(size(8)) == Counts{8});
  CHECK(counts(size({}, {}, {}, "2")) == Counts{2, 2});
  CHECK(counts(size({}, {}, "2", "6")) == Counts{6, 6});  // the node refuses, unless --oversubscribe allows it
  auto told = counts_of(size(12), allocation(uneven), asked).notices;
  CHECK(told == std::vector<std::string>{"12 ranks on 2 nodes of job 17 (8 + 4: LOCAL_WORLD_SIZE differs)"});
  uneven.erase("SLURMD_NODENAME");  // the shell of salloc
  uneven.erase("SLURM_GPUS_ON_NODE");
  CHECK(counts(size({})) == Counts{8, 4});
  CHECK(counts_of(size({}), allocation(uneven), asked).notices.size() == 1);
}

TEST_CASE("a step with fewer GPUs than its job counts by itself") {
  auto part = task_of_step(0);
  part["SLURM_GPUS_ON_NODE"] = "2";
  const auto asked = in_a_job({{"g0", 8}, {"g1", 8}, {"g2", 8}, {"g3", 4}});
  CHECK(counts_of(size({}), step(part), asked).ranks_on_node == Counts{2, 2, 2, 2});
  CHECK(counts_of(size({}), step(task_of_step(0)), asked).ranks_on_node == Counts{8, 8, 8, 4});
}

TEST_CASE("a task that does not coordinate does not judge whether ranks fit") {
  auto small = task_of_step(3);
  small["SLURM_GPUS_ON_NODE"] = "4";
  CHECK(counts_of(size(28), step(small)).expected_agents <= 4);
  small["SLURM_GPUS_PER_NODE"] = "4";  // all are like it
  CHECK(error_of(size(28), step(small)) == "28 ranks need more than 4 nodes, and step 17.0 has 4 nodes");
}

TEST_CASE("a submission asks for as many nodes as the ranks need") {
  CHECK(counts_of(size(32), SlurmSubmit{}).ranks_on_node == Counts{8, 8, 8, 8});
  CHECK(counts_of(size(32, 4), SlurmSubmit{}).ranks_on_node.size() == 8);
  CHECK(counts_of(size({}, {}, "2", "4"), SlurmSubmit{}).ranks_on_node == Counts{4, 4});
  CHECK(counts_of(size(32, {}, {}, {}, 2), SlurmSubmit{}).expected_agents == 6);
}

TEST_CASE("what does not fit is named with its numbers") {
  struct Row {
    Options options;
    const char* list;
    const char* message;
  };
  const Row rows[] = {
      {size({}), "a,b",
       "--hosts: how many ranks? --gpus N says it for all nodes, --nproc-per-node N for each, name:N for one host"},
      {size(32), "a,b", "32 ranks need more than 2 nodes, and --hosts has 2 nodes"},
      {size(8), "a:2,b:2", "8 ranks need more than 2 nodes, and --hosts has 2 nodes"},
      {size({}, {}, "3", "1"), "a,b", "--nnodes 3, and --hosts has 2 nodes"},
      {size({}, {}, "2:3", "1"), "a,b", "--nnodes 3, and --hosts has 2 nodes"},
      {size({}, {}, {}, "4"), "a:2,b", "a has 2 slots, and 4 ranks are asked for"},
      {size(8, {}, "2"), "a:2,b:2", "8 ranks do not fit onto 2 nodes of --hosts: there are 4 places"},
      {size(16, {}, {}, {}, 1), "a,b", "--spares 1 beside 2 nodes, and --hosts has 2 nodes"},
      {size({}, {}, {}, "gpu"), "a,b",
       "--nproc-per-node gpu: the GPUs of other machines are not known here; say a number"},
      {size({}, {}, {}, "cpu"), "a,b",
       "--nproc-per-node cpu: the cores of other machines are not known here; say a number"},
      {size(2000000000), "a", "more than 65536 ranks are not possible"},
      {size({}, {}, "2", "60000"), "a,b", "more than 65536 ranks are not possible"},
      {size(12, {}, {}, "8"), "a,b", "--gpus 12 and --nproc-per-node 8 disagree: 12 is not a multiple of 8"},
  };
  for (const auto& row : rows) CHECK(error_of(hosts(row.options), over_ssh(row.list)) == row.message);
  CHECK(error_of(size({}), SlurmSubmit{}) ==
        "--slurm: how many ranks? --gpus N says it for all nodes, --nproc-per-node N for each");
  CHECK(error_of(size({}, {}, {}, {}, 2), OneMachine{}) ==
        "--spares 2: this machine is the only one (--hosts, SLURM and --rdzv-endpoint add others)");
}

}  // namespace node_counts_test
