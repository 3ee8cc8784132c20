#include "catch.hpp"
#include "plan/decide_launch_mode.hpp"
#include "plan/slurm_environment.hpp"

namespace ways_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Environment = std::map<std::string, std::string>;

const Environment kToken{{"TAAS_TOKEN", "secret"}};
const std::string kNoSecret =
    "2 nodes that join need a secret, the same on each, and TAAS_TOKEN is not set: (umask 077; taas-run token > FILE), "
    "then --token-file FILE or TAAS_TOKEN=$(cat FILE); --standalone simulates the nodes on this machine";

Options sized(std::optional<int> gpus, std::optional<std::string> nnodes = {}) {
  Options options;
  options.size.gpus = gpus;
  options.size.nnodes = std::move(nnodes);
  return options;
}

Options meeting(std::string nnodes, std::optional<std::string> endpoint, std::optional<int> node_rank = {}) {
  auto options = sized({}, std::move(nnodes));
  options.rendezvous.endpoint = std::move(endpoint);
  options.rendezvous.node_rank = node_rank;
  return options;
}

Machine machine(Environment environment = {}) { return {"here.cluster", 0, 4, std::move(environment)}; }

LaunchMode way_of(const Options& options, Environment environment = {}) {
  auto mode = decide_launch_mode(options, machine(std::move(environment)));
  if (!mode) FAIL(mode.error().message);
  return *mode;
}

std::string error_of(const Options& options, Environment environment = {}) {
  auto mode = decide_launch_mode(options, machine(std::move(environment)));
  REQUIRE(mode.has_error());
  CHECK(mode.error().code == ErrorCode::kUsage);
  return mode.error().message;
}

template <class Kind>
Kind only(const LaunchMode& mode) {
  CAPTURE(describe(mode));
  REQUIRE(std::holds_alternative<Kind>(mode));
  return std::get<Kind>(mode);
}

}  // namespace

TEST_CASE("without a word about others, this machine plays all nodes") {
  only<OneMachine>(way_of({}));
  only<OneMachine>(way_of(sized(32)));
  only<OneMachine>(way_of(sized({}, "4")));
  only<OneMachine>(way_of(meeting("1", "node7:29500", 0)));
  only<OneMachine>(way_of(meeting("1:1", "localhost:0")));
  only<OneMachine>(way_of(sized({}), kToken));
}

TEST_CASE("a list of hosts means ssh, in its order") {
  auto options = sized(32);
  options.nodes.hosts = "b,a:8";
  auto mode = only<OverSsh>(way_of(options));
  CHECK(mode.hosts == std::vector<Host>{{"", "b", {}}, {"", "a", 8}});
  CHECK(describe(mode) == "ssh to 2 hosts");
  only<OverSsh>(way_of(options, batch_script()));  // what is said wins over what is found
  options.nodes.hosts = "b,user@b";
  CHECK(error_of(options) == "--hosts: b: named with two users");
  options.nodes.hosts.reset();
  options.nodes.hostfile = "list";
  options.nodes.hostfile_text = "a\nb slots=4\n";
  CHECK(only<OverSsh>(way_of(options)).hosts.size() == 2);
  options.nodes.hostfile_text = "a x\n";
  CHECK(error_of(options) == "--hostfile list: line 1: x: not slots=NUMBER");
}

TEST_CASE("torchrun's rendezvous means nodes that join") {
  auto mode = only<Join>(way_of(meeting("4", "node7:29501"), kToken));
  CHECK(mode.host == "node7");
  CHECK(mode.port == 29501);
  CHECK_FALSE(mode.node_rank);
  CHECK(mode.min_nodes == 4);
  CHECK(mode.max_nodes == 4);
  CHECK(describe(mode) == "4 nodes that meet at node7:29501");

  mode = only<Join>(way_of(meeting("2:4", "[fd00::7]"), kToken));
  CHECK(mode.host == "fd00::7");
  CHECK(mode.port == 29400);  // torchrun's for c10d
  CHECK(describe(mode) == "2 to 4 nodes that meet at [fd00::7]:29400");

  auto options = meeting("4", {}, 3);
  options.rendezvous.master_addr = "10.0.0.7";
  mode = only<Join>(way_of(options, kToken));
  CHECK(mode.host == "10.0.0.7");
  CHECK(mode.port == 29500);
  CHECK(mode.node_rank == 3);
  options.rendezvous.node_rank.reset();
  options.rendezvous.master_port = 7;
  options.nodes.is_host = true;
  mode = only<Join>(way_of(options, kToken));
  CHECK(mode.port == 7);
  CHECK(mode.is_host == true);
  options.rendezvous.endpoint = "node8:8";  // wins, as under torchrun
  CHECK(only<Join>(way_of(options, kToken)).host == "node8");
}

TEST_CASE("a total that needs several nodes says so as well as --nnodes") {
  auto options = sized(16);
  options.rendezvous.endpoint = "node7:29501";
  CHECK(only<Join>(way_of(options, kToken)).max_nodes == 2);
  options.size.gpus = 8;
  only<OneMachine>(way_of(options, kToken));
}

TEST_CASE("an endpoint, an id or a node rank always means nodes that meet, on one machine too") {
  auto options = meeting("2", "localhost:29501");
  CHECK(only<Join>(way_of(options, kToken)).host == "localhost");
  CHECK(error_of(options) == kNoSecret);
  options.rendezvous.run_id = "x";
  CHECK(only<Join>(way_of(options, kToken)).rendezvous_id == "x");
  CHECK(error_of(options) == kNoSecret);
  options.rendezvous.endpoint.reset();
  CHECK(only<Join>(way_of(options, kToken)).port == 29500);
  CHECK(error_of(options) == kNoSecret);
  options.rendezvous.run_id = "none";  // torchrun's default
  only<OneMachine>(way_of(options));
  CHECK(only<Join>(way_of(meeting("2", {}, 1), kToken)).host == "127.0.0.1");
  CHECK(only<Join>(way_of(meeting("2", ":29501", 1), kToken)).host == "127.0.0.1");
}

TEST_CASE("nodes that join need a secret") {
  auto options = meeting("2", "node7:29501");
  CHECK(error_of(options) == kNoSecret);
  CHECK(error_of(options, {{"TAAS_TOKEN", ""}}) == kNoSecret);
  options.nodes.token_file = "token";
  only<Join>(way_of(options));
}

TEST_CASE("an elastic start without a secret is told of the secret, wherever the nodes are") {
  for (const auto* endpoint : {"node7:29501", "localhost:29501"}) {
    auto options = meeting("1:2", endpoint);
    CHECK(error_of(options) == kNoSecret);
    CHECK(only<Join>(way_of(options, kToken)).min_nodes == 1);
  }
}

TEST_CASE("--standalone is this machine, whatever the rendezvous and SLURM say") {
  auto options = meeting("2", "node7:29501", 1);
  options.rendezvous.standalone = true;
  only<OneMachine>(way_of(options, kToken));
  only<OneMachine>(way_of(options, task_of_step(1)));
}

TEST_CASE("flags that cannot be meant are named") {
  CHECK(error_of(meeting("2", "node7:29501", 2), kToken) == "--node-rank 2: --nnodes 2 has ranks 0 to 1");
  CHECK(error_of(meeting("1", {}, 2), kToken) == "--node-rank 2: --nnodes has to say how many nodes there are");
  CHECK(error_of(meeting("2", "node7:0"), kToken) ==
        "--rdzv-endpoint node7:0: nodes that join need a port that all of them know, from 1 to 65535");
  CHECK(error_of(meeting("2", "node7:x", 1), kToken) ==
        "--rdzv-endpoint node7:x: the port is not a number up to 65535; say localhost:29500");
  auto options = meeting("2", "node7:1");
  options.nodes.hosts = "a";
  CHECK_THAT(error_of(options), ContainsSubstring("--hosts a and --rdzv-endpoint node7:1 exclude each other"));
  options = {};
  options.slurm.account = "me";
  CHECK(error_of(options) == "--account me: only with --slurm, which submits a job");
}

TEST_CASE("a task of a step is one of SLURM's") {
  auto task = only<SlurmTask>(way_of(sized(32), task_of_step(2)));
  CHECK(task.step.node_id == 2);
  CHECK(task.is_leader());
  CHECK_FALSE(task.coordinates());
  CHECK(describe(task) == "task 2 of step 17.0 on 4 nodes");
  CHECK(only<SlurmTask>(way_of({}, task_of_step(0))).coordinates());
  auto environment = task_of_step(0);
  environment["SLURM_STEP_NODELIST"] = "g0";
  environment["SLURM_STEP_TASKS_PER_NODE"] = "8";
  environment["SLURM_LOCALID"] = "3";
  CHECK_FALSE(only<SlurmTask>(way_of({}, environment)).is_leader());  // one of eight on one node
}

TEST_CASE("a step of one task is this machine, and says so when more is wanted") {
  auto environment = task_of_step(0);
  environment["SLURM_STEP_NODELIST"] = "g0";
  environment["SLURM_STEP_TASKS_PER_NODE"] = "1";
  only<OneMachine>(way_of(sized(8), environment));
  CHECK(error_of(sized(32), environment) ==
        "step 17.0 is one task on one node, and 4 nodes are wanted: srun --nodes=4 --ntasks-per-node=1, or no srun at "
        "all");
  environment["SLURM_JOB_NODELIST"] = "g0";
  environment["SLURM_TASKS_PER_NODE"] = "1";
  only<OneMachine>(way_of(sized(32), environment));  // nodes can only be simulated
}

TEST_CASE("torchrun's flags in a step need no secret, since SLURM's nodes know each other") {
  only<SlurmTask>(way_of(meeting("4", "g0:29500"), task_of_step(2)));
  only<SlurmTask>(way_of(meeting("4", "g0:29500", 2), task_of_step(2)));
  CHECK_THAT(error_of(meeting("4", "g0:29500", 1), task_of_step(2)), ContainsSubstring("need a secret"));
  CHECK_THAT(error_of(meeting("2", "g0:29500"), task_of_step(2)), ContainsSubstring("need a secret"));
  auto environment = task_of_step(2);
  environment["TAAS_TOKEN"] = "secret";
  only<Join>(way_of(meeting("4", "g0:29500"), environment));
}

TEST_CASE("in an allocation a step is started for other machines than this one") {
  CHECK(describe(way_of(sized(32), batch_script())) == "a step in job 17 on 4 nodes");
  only<SlurmAllocation>(way_of({}, batch_script()));
  only<OneMachine>(way_of(sized(8), batch_script()));  // the first node is enough, and this is it
  auto spare = sized(8);
  spare.nodes.spares = 1;
  only<SlurmAllocation>(way_of(spare, batch_script()));
  auto salloc = batch_script();
  salloc.erase("SLURMD_NODENAME");
  only<SlurmAllocation>(way_of(sized(8), salloc));
  salloc["SLURM_JOB_NODELIST"] = "here";
  salloc["SLURM_TASKS_PER_NODE"] = "1";
  only<OneMachine>(way_of(sized(8), salloc));  // by the machine's name
  CHECK_THAT(error_of(sized(64), batch_script()), ContainsSubstring("job 17 has 4 nodes"));
}

TEST_CASE("--slurm submits outside of a job, and is nothing new inside") {
  auto options = sized(32);
  options.slurm.submit = true;
  options.slurm.partition = "gpu";
  CHECK(describe(only<SlurmSubmit>(way_of(options))) == "a job of SLURM");
  only<SlurmAllocation>(way_of(options, batch_script()));
  only<SlurmTask>(way_of(options, task_of_step(0)));
}

TEST_CASE("--slurm-staged submits two jobs, one of which coordinates") {
  auto options = sized(32);
  options.slurm.submit = options.slurm.staged = true;
  options.data.cpus = 2;
  options.data.loader = "data:train";
  CHECK(only<SlurmStaged>(way_of(options)).held_job.empty());
  CHECK(error_of(options, batch_script()) == "--slurm-staged: this is job 17 already: call taas-run outside of a job");
  options.slurm.held_job = "16";
  auto inside = only<SlurmStaged>(way_of(options, batch_script()));
  CHECK(inside.held_job == "16");
  CHECK(inside.job->id == "17");
  CHECK(describe(inside) == "job 16 of SLURM, which is held until this one has prepared");
}

TEST_CASE("a broken environment of SLURM is told, unless it does not matter") {
  Environment broken{{"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NODELIST", "g["}};
  CHECK(error_of({}, broken) == "SLURM_JOB_NODELIST: g[: a [ without its ]");
  auto options = sized({}, "2");
  options.rendezvous.standalone = true;
  only<OneMachine>(way_of(options, broken));
}

}  // namespace ways_test
