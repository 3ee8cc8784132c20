#include <csignal>
#include <map>
#include <set>

#include "catch.hpp"
#include "plan/launch_plan.hpp"

namespace rank_environment_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Environment = std::map<std::string, std::string>;

Environment environment(const Options& options, const Machine& machine, int rank, Generation generation = {},
                        RunAddresses addresses = {"127.0.0.1", 29501, true, "/runs/x/.staging", "/runs/x/error.json",
                                                  "", ""}) {
  auto plan = make_plan(options, machine, "run-1");
  REQUIRE(plan.has_value());
  auto settings = launch_settings(*plan, machine, "/work");
  auto variables =
      rank_environment(settings, machine, plan->ranks.at(static_cast<std::size_t>(rank)), generation, addresses);
  Environment result(variables.begin(), variables.end());
  CHECK(result.size() == variables.size());  // none is set twice
  return result;
}

Options with_gpus(int gpus, std::optional<int> gpus_per_node = {}) {
  Options options;
  options.size.gpus = gpus;
  options.size.gpus_per_node = gpus_per_node;
  return options;
}

std::string value(const Environment& variables, const std::string& name) {
  auto found = variables.find(name);
  return found == variables.end() ? "(unset)" : found->second;
}

}  // namespace

TEST_CASE("a rank is told who it is, by every name that programs look for") {
  Options options = with_gpus(9);
  options.supervision.max_restarts = 3;
  auto actual = environment(options, {"here", 0, 18, {}}, 7, Generation{2});
  const Environment expected{{"RANK", "7"},
                             {"WORLD_SIZE", "9"},
                             {"LOCAL_RANK", "2"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"GROUP_RANK", "1"},
                             {"GROUP_WORLD_SIZE", "2"},
                             {"NODE_RANK", "1"},
                             {"ROLE_NAME", "default"},
                             {"ROLE_RANK", "7"},
                             {"ROLE_WORLD_SIZE", "9"},
                             {"LOCAL_SIZE", "4"},
                             {"CROSS_RANK", "1"},
                             {"CROSS_SIZE", "2"},
                             {"MASTER_ADDR", "127.0.0.1"},
                             {"MASTER_PORT", "29501"},
                             {"TORCHELASTIC_RUN_ID", "run-1"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_MAX_RESTARTS", "3"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"TORCHELASTIC_ERROR_FILE", "/runs/x/error.json"},
                             {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                             {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                             {"PYTHONFAULTHANDLER", "1"},
                             {"OMP_NUM_THREADS", "2"},
                             {"GLOO_SOCKET_IFNAME", "lo"},
                             {"ACCELERATE_USE_CPU", "1"},
                             {"TAAS_OUTPUT_DIR", "/runs/x/.staging"},
                             {"TAAS_RUN_ID", "run-1"},
                             {"TAAS_DEVICES_PER_RANK", "1"},
                             {"WANDB_RUN_GROUP", "run-1"},
                             {"TORCH_NCCL_DUMP_ON_TIMEOUT", "1"},
                             {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "800"},
                             {"TORCH_FR_BUFFER_SIZE", "2000"}};
  CHECK(actual == expected);
}

TEST_CASE("frameworks on the CPU are told of the world, and nothing where the user or a device says otherwise") {
  const auto on_cpu = [](Machine machine, int ranks, std::map<std::string, std::string> own = {}) {
    machine.environment = std::move(own);
    return environment(with_gpus(ranks), machine, 0);
  };
  const Machine cpus{"here", 0, 8, {}};
  auto told = on_cpu(cpus, 4);
  CHECK(value(told, "ACCELERATE_USE_CPU") == "1");
  CHECK(value(told, "PL_TRAINER_DEVICES") == "4");
  CHECK(value(told, "PL_TRAINER_NUM_NODES") == "1");

  auto others = cpus;
  others.other_accelerators = "8 AMD GPUs";
  for (const auto& untold : {on_cpu(cpus, 1), on_cpu(others, 4), environment(with_gpus(4), {"here", 4, 8, {}}, 0)}) {
    for (auto name : {"ACCELERATE_USE_CPU", "PL_TRAINER_DEVICES", "PL_TRAINER_NUM_NODES"})
      CHECK(value(untold, name) == "(unset)");
  }
  auto mine = on_cpu(cpus, 4, {{"ACCELERATE_USE_CPU", "no"}, {"PL_TRAINER_DEVICES", "2"}});
  CHECK(value(mine, "ACCELERATE_USE_CPU") == "(unset)");
  CHECK(value(mine, "PL_TRAINER_DEVICES") == "(unset)");
  for (auto name : {"ACCELERATE_TORCH_DEVICE", "ACCELERATE_USE_DEEPSPEED"})
    CHECK(value(on_cpu(cpus, 4, {{name, "x"}}), "ACCELERATE_USE_CPU") == "(unset)");
}

TEST_CASE("what the user set for a library stays") {
  Machine machine{"here", 0, 8, {}};
  for (auto name :
       {"OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "PYTHONFAULTHANDLER", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
        "WANDB_RUN_GROUP", "TORCH_NCCL_DUMP_ON_TIMEOUT", "TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE"}) {
    machine.environment[name] = "mine";
  }
  auto actual = environment(with_gpus(2), machine, 0);
  for (const auto& [name, mine] : machine.environment) CHECK(value(actual, name) == "(unset)");
}

TEST_CASE("what launchers above set for their ranks is replaced") {
  Machine machine{"here", 0, 8, {{"RANK", "7"}, {"WORLD_SIZE", "9"}, {"TORCHELASTIC_RESTART_COUNT", "4"}}};
  auto actual = environment(with_gpus(2), machine, 1);
  CHECK(value(actual, "RANK") == "1");
  CHECK(value(actual, "WORLD_SIZE") == "2");
  CHECK(value(actual, "TORCHELASTIC_RESTART_COUNT") == "0");
}

TEST_CASE("role, signals and the store's place are as asked") {
  Options options;
  options.rendezvous.role = "trainer";
  options.supervision.signals_to_handle = {SIGTERM, SIGUSR1};
  auto actual = environment(options, {"here", 0, 1, {}}, 0, {}, {"node7", 1, false, "", "", "", ""});
  CHECK(value(actual, "ROLE_NAME") == "trainer");
  CHECK(value(actual, "TORCHELASTIC_SIGNALS_TO_HANDLE") == "SIGTERM,SIGUSR1");
  CHECK(value(actual, "TORCHELASTIC_USE_AGENT_STORE") == "False");
  CHECK(value(actual, "GLOO_SOCKET_IFNAME") == "(unset)");
}

TEST_CASE("GPUs are left alone on one node") {
  Machine machine{"here", 8, 8, {}};
  CHECK(value(environment(with_gpus(8), machine, 3), "CUDA_VISIBLE_DEVICES") == "(unset)");
  machine.environment["CUDA_VISIBLE_DEVICES"] = "7,6,5,4,3,2,1,0";
  CHECK(value(environment(with_gpus(8), machine, 3), "CUDA_VISIBLE_DEVICES") == "(unset)");
}

TEST_CASE("each simulated node has GPUs of its own, since its local ranks count from 0") {
  Machine machine{"here", 4, 8, {}};
  CHECK(value(environment(with_gpus(4, 2), machine, 1), "CUDA_VISIBLE_DEVICES") == "0,1");
  CHECK(value(environment(with_gpus(4, 2), machine, 2), "CUDA_VISIBLE_DEVICES") == "2,3");
  machine.environment["CUDA_VISIBLE_DEVICES"] = "4, 5,6,7,-1,9";
  CHECK(value(environment(with_gpus(4, 2), machine, 0), "CUDA_VISIBLE_DEVICES") == "4,5");
  CHECK(value(environment(with_gpus(4, 2), machine, 3), "CUDA_VISIBLE_DEVICES") == "6,7");
}

TEST_CASE("ranks with several GPUs have the nccl that has more than one device a group") {
  auto nccl = [](int devices_per_rank, int gpus, Environment own) {
    auto options = with_gpus(8);
    options.size.devices_per_rank = devices_per_rank;
    return value(environment(options, {"here", gpus, 8, std::move(own)}, 1), "TORCH_DIST_USE_NCCL2");
  };
  CHECK(nccl(2, 8, {}) == "0");
  CHECK(nccl(1, 8, {}) == "(unset)");
  CHECK(nccl(2, 0, {}) == "(unset)");
  CHECK(nccl(2, 8, {{"TORCH_DIST_USE_NCCL2", "1"}}) == "(unset)");
}

TEST_CASE("ranks that share GPUs are dealt over them, and are hosts of their own for NCCL") {
  Machine machine{"here", 2, 8, {{"CUDA_VISIBLE_DEVICES", "5,7"}}};
  Options options = with_gpus(6);
  options.size.oversubscribe = true;
  const RunAddresses here{"127.0.0.1", 1, true, "", "", "", ""};
  std::set<std::string> hosts;
  for (int rank = 0; rank < 6; ++rank) {
    auto actual = environment(options, machine, rank, {}, here);
    CHECK(value(actual, "CUDA_VISIBLE_DEVICES") == (rank % 2 == 0 ? "5" : "7"));
    CHECK(value(actual, "LOCAL_RANK") == "0");
    CHECK(value(actual, "LOCAL_WORLD_SIZE") == "1");
    CHECK(value(actual, "GROUP_RANK") == std::to_string(rank));
    CHECK(value(actual, "GROUP_WORLD_SIZE") == "6");
    CHECK(value(actual, "NCCL_SOCKET_IFNAME") == "=lo");
    CHECK(value(actual, "NCCL_NET") == "Socket");
    CHECK(value(actual, "TORCH_DIST_USE_NCCL2") == "0");
    hosts.insert(value(actual, "NCCL_HOSTID"));
  }
  CHECK(hosts.size() == 6);
}

TEST_CASE("slices of GPUs are given to one rank each, and are a shared GPU for NCCL") {
  Machine machine{"here", 4, 8, {{"CUDA_VISIBLE_DEVICES", "MIG-a, MIG-b,MIG-c,MIG-d"}}};
  const char* slices[] = {"MIG-a", "MIG-b", "MIG-c", "MIG-d"};
  for (int rank = 0; rank < 4; ++rank) {
    auto actual = environment(with_gpus(4), machine, rank);
    CHECK(value(actual, "CUDA_VISIBLE_DEVICES") == slices[rank]);
    CHECK(value(actual, "LOCAL_RANK") == "0");
    CHECK(value(actual, "LOCAL_WORLD_SIZE") == "1");
    CHECK(value(actual, "NCCL_HOSTID").ends_with("rank-" + std::to_string(rank)));
  }
  CHECK(value(environment(with_gpus(1), machine, 0), "NCCL_HOSTID") == "(unset)");
}

TEST_CASE("a node of several that shares its GPUs keeps its size, and each rank sees one device") {
  LaunchSettings settings;
  settings.run_id = "run-1";
  settings.device = Device::kGpu;
  settings.options.size.oversubscribe = true;
  RankPlace place{Rank{11}, 16, 3, 8, NodeIndex{1}, 2};
  RunAddresses addresses{"10.0.0.1", 40000, true, "", "", "eth1", ""};
  auto sharing = [&](int gpus, Environment own) {
    auto variables = rank_environment(settings, {"g1", gpus, 64, std::move(own)}, place, {}, addresses);
    return Environment(variables.begin(), variables.end());
  };
  auto actual = sharing(2, {});
  CHECK(value(actual, "CUDA_VISIBLE_DEVICES") == "1");
  CHECK(value(actual, "LOCAL_RANK") == "0");
  CHECK(value(actual, "LOCAL_WORLD_SIZE") == "8");
  CHECK(value(actual, "NCCL_HOSTID") == "run-1-rank-11");
  CHECK(value(actual, "NCCL_SOCKET_IFNAME") == "=eth1");
  CHECK(value(sharing(2, {{"NCCL_SOCKET_IFNAME", "ib0"}}), "NCCL_SOCKET_IFNAME") == "(unset)");
  for (int gpus : {0, 8}) {
    actual = sharing(gpus, {});
    CHECK(value(actual, "NCCL_HOSTID") == "(unset)");
    CHECK(value(actual, "NCCL_SOCKET_IFNAME") == "(unset)");
    CHECK(value(actual, "LOCAL_RANK") == "3");
  }
}

TEST_CASE("--virtual-local-rank gives each rank one device, called 0") {
  Options options = with_gpus(2);
  options.rendezvous.virtual_local_rank = true;
  Machine machine{"here", 2, 8, {{"CUDA_VISIBLE_DEVICES", "5,GPU-8a1b"}}};
  auto second = environment(options, machine, 1);
  CHECK(value(second, "LOCAL_RANK") == "0");
  CHECK(value(second, "RANK") == "1");
  CHECK(value(second, "CUDA_VISIBLE_DEVICES") == "GPU-8a1b");
  CHECK(value(second, "HIP_VISIBLE_DEVICES") == "(unset)");
  machine.environment = {{"HIP_VISIBLE_DEVICES", "3,1"}};
  CHECK(value(environment(options, machine, 1), "HIP_VISIBLE_DEVICES") == "1");
  CHECK(value(environment(options, machine, 1), "CUDA_VISIBLE_DEVICES") == "1");
  machine = {"here", 0, 8, {}};
  CHECK(value(environment(options, machine, 1), "CUDA_VISIBLE_DEVICES") == "1");
}

TEST_CASE("a rank that sees its own devices only is given accelerators of other makers by their variable") {
  Options options = with_gpus(2);
  options.rendezvous.virtual_local_rank = true;
  Machine machine{"here", 0, 8, {}};
  machine.accelerator_variable = "ZE_AFFINITY_MASK";
  auto mask = [&](int rank) { return value(environment(options, machine, rank), "ZE_AFFINITY_MASK"); };
  CHECK(mask(1) == "1");
  options.size.gpus = 4;
  options.size.devices_per_rank = 2;
  CHECK(mask(1) == "2,3");
  machine.environment = {{"ZE_AFFINITY_MASK", "7, 6,5"}};
  CHECK(mask(0) == "7,6");
  CHECK(mask(1).empty());
  machine.environment = {{"ZE_AFFINITY_MASK", ""}};
  CHECK(mask(0).empty());
  machine.environment = {{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}};
  CHECK(mask(0) == "0,1");
  machine.accelerator_variable = "HIP_VISIBLE_DEVICES";
  CHECK(value(environment(options, machine, 1), "HIP_VISIBLE_DEVICES") == "6,7");
  machine.accelerator_variable = "ZE_AFFINITY_MASK";
  machine.environment = {};
  options = with_gpus(2);
  CHECK(mask(1) == "(unset)");
}

TEST_CASE("ranks of all simulated nodes share this machine's cores, those of real ones only their node's") {
  auto threads = [](bool simulated, int cores, int world, int local) {
    LaunchSettings settings;
    settings.simulated = simulated;
    return omp_threads(settings, {"here", 0, cores, {}}, {Rank{0}, world, 0, local, NodeIndex{0}, world / local});
  };
  CHECK(threads(false, 4, 1, 1) == 4);
  CHECK(threads(false, 4, 2, 2) == 2);
  CHECK(threads(false, 4, 3, 3) == 1);
  CHECK(threads(true, 32, 16, 8) == 2);
  CHECK(threads(false, 32, 16, 8) == 4);
  CHECK(threads(false, 4, 16, 8) == 1);
}

TEST_CASE("a node needs to know no more than its own share") {
  LaunchSettings settings;
  settings.run_id = "run-1";
  settings.device = Device::kGpu;
  settings.restarts_before = 2;
  RankPlace place{Rank{29}, 32, 5, 8, NodeIndex{3}, 4};
  RunAddresses addresses{"10.0.0.1", 40000, true, "/out", "/error", "eth1", "/stop"};
  auto variables = rank_environment(settings, {"g3", 8, 64, {}}, place, Generation{1}, addresses);
  Environment actual(variables.begin(), variables.end());
  CHECK(value(actual, "RANK") == "29");
  CHECK(value(actual, "WORLD_SIZE") == "32");
  CHECK(value(actual, "LOCAL_RANK") == "5");
  CHECK(value(actual, "LOCAL_WORLD_SIZE") == "8");
  CHECK(value(actual, "GROUP_RANK") == "3");
  CHECK(value(actual, "GROUP_WORLD_SIZE") == "4");
  CHECK(value(actual, "CROSS_SIZE") == "4");
  CHECK(value(actual, "MASTER_ADDR") == "10.0.0.1");
  CHECK(value(actual, "OMP_NUM_THREADS") == "8");
  CHECK(value(actual, "GLOO_SOCKET_IFNAME") == "eth1");
  CHECK(value(actual, "TORCHELASTIC_RESTART_COUNT") == "3");  // over the job's restarts as well
  CHECK(value(actual, "TAAS_STOP_REQUESTED") == "/stop");
  CHECK(value(actual, "CUDA_VISIBLE_DEVICES") == "(unset)");  // all of the node's
  settings.options.rendezvous.virtual_local_rank = true;
  variables = rank_environment(settings, {"g3", 8, 64, {}}, place, Generation{1}, addresses);
  CHECK(value({variables.begin(), variables.end()}, "CUDA_VISIBLE_DEVICES") == "5");
}

TEST_CASE("Gloo's interface is the one that reaches the others, unless the user chose one") {
  auto interface = [](const char* master, const char* measured, Environment own) {
    Machine machine{"here", 0, 4, std::move(own)};
    return value(environment({}, machine, 0, {}, {master, 1, true, "", "", measured, ""}), "GLOO_SOCKET_IFNAME");
  };
  CHECK(interface("127.0.0.1", "", {}) == "lo");
  CHECK(interface("::1", "", {}) == "lo");
  CHECK(interface("10.0.0.1", "", {}) == "(unset)");
  CHECK(interface("10.0.0.1", "eth1", {}) == "eth1");
  CHECK(interface("10.0.0.1", "eth1", {{"GLOO_SOCKET_IFNAME", "ib0"}}) == "(unset)");
}

TEST_CASE("flight records go into the run's folder, unless the user has a place or a size for them") {
  auto records = [](Environment own) {
    RunAddresses addresses{"127.0.0.1", 1, true, "", "", "", ""};
    addresses.flight_records = "/runs/x/generation-0/flight-record-";
    auto actual = environment({}, {"here", 0, 4, std::move(own)}, 0, {}, addresses);
    return std::pair(value(actual, "TORCH_FR_DUMP_TEMP_FILE"), value(actual, "TORCH_FR_BUFFER_SIZE"));
  };
  using Pair = std::pair<std::string, std::string>;
  CHECK(records({}) == Pair("/runs/x/generation-0/flight-record-", "2000"));
  CHECK(records({{"TORCH_FR_DUMP_TEMP_FILE", "/mine"}}).first == "(unset)");
  CHECK(records({{"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "/mine"}}).first == "(unset)");
  CHECK(records({{"TORCH_NCCL_TRACE_BUFFER_SIZE", "0"}}).second == "(unset)");
  for (auto name : {"TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC"}) {
    auto actual = environment({}, {"here", 0, 4, {{name, "5"}}}, 0);
    CHECK(value(actual, "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC") == "(unset)");
  }
}

TEST_CASE("TF_CONFIG is set where it is asked for") {
  RunAddresses addresses{"127.0.0.1", 1, true, "", "", "", ""};
  addresses.servers = {"a:1", "b:2"};
  auto options = with_gpus(2);
  CHECK(value(environment(options, {"here", 0, 4, {}}, 1, {}, addresses), "TF_CONFIG") == "(unset)");
  CHECK(ports_for_ranks(options, 2) == 0);
  options.frameworks.framework = Framework::kTensorFlow;
  CHECK(ports_for_ranks(options, 2) == 2);
  CHECK_THAT(value(environment(options, {"here", 0, 4, {}}, 1, {}, addresses), "TF_CONFIG"),
             ContainsSubstring(R"(["a:1","b:2"]},"task":{"type":"worker","index":1)"));
}

TEST_CASE("a node says when its share needs more GPUs than it has") {
  LaunchSettings settings;
  settings.device = Device::kGpu;
  CHECK(check_share(settings, {"g0", 8, 64, {}}, 8).has_value());
  CHECK(check_share(settings, {"g0", 0, 64, {}}, 8).has_value());  // CPU ranks
  auto few = check_share(settings, {"g0", 4, 64, {}}, 8);
  REQUIRE(few.has_error());
  CHECK(few.error().message == "8 ranks need 8 GPUs, and 4 are visible here: --gpus-per-node says how many a node has");
  CHECK(check_share(settings, {"g0", 1, 64, {{"SLURM_JOB_ID", "17"}}}, 8).error().message ==
        "8 ranks need 8 GPUs, and 1 is visible here: --gpus-per-node says how many a node has; srun --gpu-bind=none "
        "shows all of a node's to each task");
  settings.options.size.oversubscribe = true;
  CHECK(check_share(settings, {"g0", 4, 64, {}}, 8).has_value());
  settings.options.size.oversubscribe = false;
  settings.device = Device::kCpu;
  CHECK(check_share(settings, {"g0", 4, 64, {}}, 8).has_value());
}

TEST_CASE("a node whose GPUs have vanished refuses its share, unless all ranks are to be on the CPU") {
  LaunchSettings settings;
  settings.device = Device::kGpu;
  Machine machine{"g0", 0, 64, {}};
  machine.gpu_problem = "the driver is not loaded";
  CHECK(check_share(settings, machine, 8).error().message ==
        "no GPU can be used here: the driver is not loaded; --env CUDA_VISIBLE_DEVICES= runs ranks on the CPU");
  CHECK(check_share(settings, machine, 0).has_value());
  settings.options.frameworks.env = {"A=b", "CUDA_VISIBLE_DEVICES="};
  CHECK(check_share(settings, machine, 8).has_value());
  settings.options.frameworks.env = {"CUDA_VISIBLE_DEVICES=0"};
  CHECK(check_share(settings, machine, 8).has_error());
  settings.device = Device::kCpu;
  CHECK(check_share(settings, machine, 8).has_value());
}

}  // namespace rank_environment_test
