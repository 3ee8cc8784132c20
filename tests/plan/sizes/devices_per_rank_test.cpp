#include <map>

#include "catch.hpp"
#include "plan/launch_plan.hpp"
#include "plan/slurm_environment.hpp"

namespace devices_per_rank_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Counts = std::vector<int>;
using Text = std::optional<std::string>;
using Number = std::optional<int>;

Options size(int devices, Number gpus, Number gpus_per_node = {}, Text nnodes = {}, Text nproc_per_node = {}) {
  Options options;
  options.size = {gpus, gpus_per_node, std::move(nnodes), std::move(nproc_per_node), false, devices};
  return options;
}

Options shared(Options options) {
  options.size.oversubscribe = true;
  return options;
}

Options over(const char* list, Options options) {
  options.nodes.hosts = list;
  return options;
}

Machine machine(int gpus, std::map<std::string, std::string> environment = {}) {
  return {"here", gpus, 4, std::move(environment)};
}

LaunchPlan plan_of(const Options& options, const Machine& where) {
  auto plan = make_plan(options, where, "run-1");
  if (!plan) FAIL(plan.error().message);
  return *plan;
}

Counts counts_of(const Options& options, const Machine& where) {
  Counts counts;
  for (const auto& node : plan_of(options, where).nodes) counts.push_back(node.local_world_size);
  return counts;
}

std::string error_of(const Options& options, const Machine& where) {
  auto plan = make_plan(options, where, "run-1");
  REQUIRE(plan.has_error());
  CHECK(plan.error().code == ErrorCode::kUsage);
  return plan.error().message;
}

std::string value(const Options& options, const Machine& where, std::size_t rank, const std::string& name) {
  auto plan = plan_of(options, where);
  auto settings = launch_settings(plan, where, "/work");
  const RunAddresses addresses{"127.0.0.1", 1, true, "", "", "", ""};
  for (const auto& variable : rank_environment(settings, where, plan.ranks.at(rank), {}, addresses)) {
    if (variable.first == name) return variable.second;
  }
  return "(unset)";
}

Machine in_a_job(std::map<std::string, int> gpus) {
  auto environment = batch_script();
  environment["SLURM_JOB_NODELIST"] = "g0,h0";
  environment["SLURM_TASKS_PER_NODE"] = "1(x2)";
  auto machine = Machine{"g0", 8, 4, environment};
  machine.job_gpus = std::move(gpus);
  return machine;
}

}  // namespace

TEST_CASE("GPUs are counted as before, and make fewer ranks") {
  CHECK(counts_of(size(2, 8), machine(0)) == Counts{4});
  CHECK(counts_of(size(2, 8), machine(8)) == Counts{4});
  CHECK(counts_of(size(2, {}), machine(8)) == Counts{4});
  CHECK(counts_of(size(2, 6), machine(7)) == Counts{3});
  CHECK(counts_of(size(2, 16), machine(0)) == Counts{4, 4});
  CHECK(counts_of(size(3, 9), machine(0)) == Counts{2, 1});
  CHECK(counts_of(size(16, 32), machine(0)) == Counts{1, 1});
  CHECK(counts_of(size(2, 8, 4), machine(8)) == Counts{2, 2});
  CHECK(counts_of(size(2, 8, {}, "2"), machine(8)) == Counts{2, 2});
  CHECK(counts_of(size(2, {}, {}, {}, "gpu"), machine(8)) == Counts{4});
  CHECK(counts_of(size(2, {}, {}, {}, "4"), machine(8)) == Counts{4});
  CHECK(counts_of(size(2, {}, {}, {}, "auto"), machine(0)) == Counts{4});
  CHECK(counts_of(size(2, {}), machine(0)) == Counts{1});
}

TEST_CASE("nodes that are other machines hold as many groups as they have GPUs for") {
  CHECK(counts_of(over("a,b", size(2, 16)), machine(0)) == Counts{4, 4});
  CHECK(counts_of(over("a,b", size(2, 8, 4)), machine(0)) == Counts{2, 2});
  CHECK(counts_of(over("a:2,b:2", size(4, {})), machine(0)) == Counts{2, 2});
  CHECK(counts_of(over("a,b,c", size(2, 24, {}, "2:3")), machine(0)) == Counts{4, 4, 4});
  CHECK(counts_of(size(2, {}), in_a_job({{"g0", 8}, {"h0", 4}})) == Counts{4, 2});
  CHECK(counts_of(size(2, 12), in_a_job({{"g0", 8}, {"h0", 4}})) == Counts{4, 2});
  CHECK(counts_of(size(2, 8, {}, "2"), in_a_job({{"g0", 8}, {"h0", 3}})) == Counts{3, 1});
}

TEST_CASE("a group of devices does not span nodes, and none is left over unsaid") {
  CHECK(error_of(size(2, 7), machine(8)) == "--gpus 7 is not a multiple of --devices-per-rank 2");
  CHECK(error_of(size(2, 8, 3), machine(8)) == "--gpus-per-node 3 is not a multiple of --devices-per-rank 2");
  CHECK(error_of(size(2, {}), machine(7)) ==
        "--devices-per-rank 2: this machine has 7 GPUs, which is not a multiple: --gpus N says how many to use");
  CHECK(
      error_of(size(2, {}, {}, {}, "gpu"), machine(7)) ==
      "--nproc-per-node gpu: --devices-per-rank 2: a node has 7 GPUs, which is not a multiple: --gpus N says how many "
      "to use");
  CHECK(error_of(size(2, {}), in_a_job({{"g0", 8}, {"h0", 3}})) ==
        "--devices-per-rank 2: the GPUs of h0 are not a multiple, 1 is left over: --gpus N or --nproc-per-node N says "
        "how many to use");
}

TEST_CASE("sizes that disagree are named as they were written") {
  CHECK(error_of(size(2, 12, {}, {}, "4"), machine(0)) ==
        "--gpus 12 (6 ranks of 2 GPUs) and --nproc-per-node 4 disagree: 6 is not a multiple of 4");
  CHECK(error_of(size(2, {}, 4, {}, "4"), machine(0)) ==
        "--nproc-per-node 4 and --gpus-per-node 4 disagree: give one of them");
  CHECK(error_of(size(2, {}, {}, {}, "cpu"), machine(8)) ==
        "--nproc-per-node cpu: ranks without GPUs have no use for --devices-per-rank 2: leave out one of them");
  CHECK(error_of(over("a,b,c", size(2, 8, {}, "2:3")), machine(0)) ==
        "--gpus 8 (4 ranks of 2 GPUs) is not a multiple of 3: the nodes of a range are equal");
  CHECK_THAT(error_of(size(2, 16), machine(8)), ContainsSubstring("8 ranks need 16 GPUs, and this machine has 8"));
  CHECK_THAT(error_of(shared(size(2, 8)), machine(1)),
             ContainsSubstring("--devices-per-rank 2: 1 GPU is visible here"));
}

TEST_CASE("a rank sees its group only, and its local rank counts ranks") {
  auto options = size(2, 8);
  CHECK(value(options, machine(8), 0, "CUDA_VISIBLE_DEVICES") == "0,1");
  CHECK(value(options, machine(8), 3, "CUDA_VISIBLE_DEVICES") == "6,7");
  CHECK(value(options, machine(8), 3, "LOCAL_RANK") == "3");
  CHECK(value(options, machine(8), 3, "LOCAL_WORLD_SIZE") == "4");
  CHECK(value(options, machine(8), 3, "TAAS_DEVICES_PER_RANK") == "2");
  CHECK(value(size(1, 8), machine(8), 3, "TAAS_DEVICES_PER_RANK") == "1");
  CHECK(value(size(2, 4), machine(4, {{"CUDA_VISIBLE_DEVICES", "5,MIG-a,MIG-b,GPU-c"}}), 1, "CUDA_VISIBLE_DEVICES") ==
        "MIG-b,GPU-c");
  auto hip = machine(4, {{"HIP_VISIBLE_DEVICES", "3,2,1,0"}});
  CHECK(value(size(2, 4), hip, 1, "HIP_VISIBLE_DEVICES") == "1,0");
  CHECK(value(size(2, 4), hip, 1, "CUDA_VISIBLE_DEVICES") == "1,0");
  options.rendezvous.virtual_local_rank = true;
  CHECK(value(options, machine(8), 3, "LOCAL_RANK") == "0");
  CHECK(value(options, machine(8), 3, "CUDA_VISIBLE_DEVICES") == "6,7");
}

TEST_CASE("groups of simulated nodes follow each other, and shared GPUs are dealt in turn") {
  CHECK(value(size(2, 8, 4), machine(8), 2, "CUDA_VISIBLE_DEVICES") == "4,5");
  CHECK(value(size(2, 8, 4), machine(8), 2, "LOCAL_RANK") == "0");
  CHECK(value(shared(size(2, 8)), machine(3), 0, "CUDA_VISIBLE_DEVICES") == "0,1");
  CHECK(value(shared(size(2, 8)), machine(3), 1, "CUDA_VISIBLE_DEVICES") == "2,0");
  CHECK(value(shared(size(2, 8)), machine(3), 1, "LOCAL_RANK") == "0");
  CHECK(value(shared(size(2, 8)), machine(3), 1, "NCCL_HOSTID") == "run-1-rank-1");
  CHECK(value(shared(size(2, 8)), machine(8), 1, "NCCL_HOSTID") == "(unset)");
}

TEST_CASE("without GPUs a rank is told the numbers of those that it would have") {
  CHECK(value(size(2, 8), machine(0), 1, "CUDA_VISIBLE_DEVICES") == "2,3");
  CHECK(value(size(2, 8), machine(0, {{"CUDA_VISIBLE_DEVICES", ""}}), 1, "CUDA_VISIBLE_DEVICES") == "(unset)");
  CHECK(plan_of(size(2, 8), machine(0)).notices ==
        std::vector<std::string>{"no GPU here: 4 CPU ranks with gloo, each in place of one with 2 GPUs"});
  CHECK(plan_of(size(2, {}), machine(8)).notices == std::vector<std::string>{"8 GPUs here: 4 ranks, each on 2 GPUs"});
}

TEST_CASE("an agent refuses more groups than its GPUs make") {
  LaunchSettings settings;
  settings.device = Device::kGpu;
  settings.options.size.devices_per_rank = 2;
  CHECK(check_share(settings, machine(8), 4).has_value());
  CHECK(check_share(settings, machine(0), 4).has_value());
  auto refused = check_share(settings, machine(7), 4);
  REQUIRE(refused.has_error());
  CHECK_THAT(refused.error().message, ContainsSubstring("4 ranks need 8 GPUs, and 7 are visible here"));
  settings.options.size.oversubscribe = true;
  CHECK(check_share(settings, machine(2), 4).has_value());
  CHECK(check_share(settings, machine(1), 4).has_error());
}

TEST_CASE("a node that joins asks for the same devices, or leaves them to the first") {
  auto first = launch_settings(plan_of(size(2, 8), machine(8)), machine(8), "/work");
  auto check = [&](int devices, int gpus) {
    return check_same_wishes(plan_of(size(devices, gpus), machine(16)), first, 4);
  };
  CHECK(check(2, 8).has_value());
  CHECK(check(1, 4).has_value());
  REQUIRE(check(4, 16).has_error());
  CHECK(check(4, 16).error().message.starts_with("--devices-per-rank 4 here, and 2 on the first node"));
}

}  // namespace devices_per_rank_test
