#include "plan/sizes/sizes.hpp"

#include <optional>

#include "catch.hpp"

namespace sizes_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Text = std::optional<std::string>;
using Number = std::optional<int>;

SizeOptions size(Number gpus, Number gpus_per_node = {}, Text nnodes = {}, Text nproc_per_node = {}) {
  return {gpus, gpus_per_node, std::move(nnodes), std::move(nproc_per_node), false};
}

Machine machine(int gpus, int cores = 4) { return {"here", gpus, cores, {}}; }

std::string error_of(const SizeOptions& options, const Machine& where) {
  auto sizes = decide_sizes(options, where);
  REQUIRE(sizes.has_error());
  CHECK(sizes.error().code == ErrorCode::kUsage);
  return sizes.error().message;
}

}  // namespace

TEST_CASE("ranks are spread over nodes as evenly as it goes") {
  struct Row {
    SizeOptions options;
    int gpus;
    std::vector<int> expected;
  };
  const Row rows[] = {
      {size({}), 0, {1}},
      {size({}), 1, {1}},
      {size({}), 4, {4}},
      {size({}), 16, {16}},
      {size(1), 0, {1}},
      {size(8), 0, {8}},
      {size(9), 0, {5, 4}},
      {size(12), 0, {6, 6}},
      {size(16), 0, {8, 8}},
      {size(17), 0, {6, 6, 5}},
      {size(32), 0, {8, 8, 8, 8}},
      {size(8, 4), 0, {4, 4}},
      {size(16), 16, {16}},
      {size(16, 8), 16, {8, 8}},
      {size(8, {}, "2"), 0, {4, 4}},
      {size(9, {}, "2:2"), 0, {5, 4}},
      {size(16, {}, {}, "4"), 0, {4, 4, 4, 4}},
      {size(16, {}, "2", "8"), 0, {8, 8}},
      {size({}, {}, "2", "3"), 0, {3, 3}},
      {size({}, 4, "2"), 0, {4, 4}},
      {size({}, {}, "1"), 4, {1}},
      {size({}, {}, "1:1"), 0, {1}},
      {size({}, {}, {}, "3"), 0, {3}},
      {size({}, {}, {}, "auto"), 0, {4}},
      {size({}, {}, {}, "auto"), 2, {2}},
      {size({}, {}, {}, "gpu"), 2, {2}},
      {size({}, {}, {}, "cpu"), 2, {4}},
  };
  for (const auto& row : rows) {
    CAPTURE(row.options.gpus.value_or(-1), row.options.nnodes.value_or("-"), row.options.nproc_per_node.value_or("-"),
            row.gpus);
    auto sizes = decide_sizes(row.options, machine(row.gpus));
    REQUIRE(sizes.has_value());
    CHECK(sizes->ranks_on_node == row.expected);
  }
}

TEST_CASE("ranks are on the CPU without GPUs, or when asked to be") {
  CHECK(decide_sizes(size(2), machine(0))->device == Device::kCpu);
  CHECK(decide_sizes(size(2), machine(2))->device == Device::kGpu);
  CHECK(decide_sizes(size({}), machine(1))->device == Device::kGpu);
  CHECK(decide_sizes(size({}, {}, {}, "cpu"), machine(2))->device == Device::kCpu);
  CHECK(decide_sizes(size({}, {}, {}, "auto"), machine(2))->device == Device::kGpu);
}

TEST_CASE("what was inferred is said in one line, what was asked for is not") {
  auto notices = [](const SizeOptions& options, int gpus) { return decide_sizes(options, machine(gpus, 16))->notices; };
  using Lines = std::vector<std::string>;
  CHECK(notices(size({}), 0).empty());
  CHECK(notices(size({}), 1).empty());
  CHECK(notices(size({}, {}, {}, "4"), 0).empty());
  CHECK(notices(size(8), 8).empty());
  CHECK(notices(size({}), 8) == Lines{"8 GPUs here: 8 ranks, one on each GPU"});
  CHECK(notices(size(1), 0) == Lines{"no GPU here: 1 CPU rank with gloo"});
  CHECK(notices(size(16), 0) == Lines{"no GPU here: 16 CPU ranks with gloo on 2 simulated nodes"});
  CHECK(notices(size(12), 0) == Lines{"no GPU here: 12 CPU ranks with gloo on 2 simulated nodes (6 + 6)"});
  CHECK(notices(size(9), 0) ==
        Lines{"no GPU here: 9 CPU ranks with gloo on 2 simulated nodes (5 + 4: LOCAL_WORLD_SIZE differs)"});
  CHECK(notices(size(100), 0) ==
        Lines{"no GPU here: 100 CPU ranks with gloo on 13 simulated nodes (7 to 8 each: LOCAL_WORLD_SIZE differs)"});
  CHECK(notices(size({}, {}, "2", "3"), 0) == Lines{"no GPU here: 6 CPU ranks with gloo on 2 simulated nodes"});
  CHECK(notices(size(8, 4), 8) == Lines{"8 GPUs here: 8 ranks, one on each GPU on 2 simulated nodes"});
}

TEST_CASE("GPUs that have vanished are no reason to train on the CPU") {
  auto broken = machine(0);
  broken.gpu_problem = "the driver is not loaded";
  const auto* expected =
      "no GPU can be used here: the driver is not loaded; CUDA_VISIBLE_DEVICES= or --nproc-per-node cpu runs ranks on "
      "the CPU";
  for (const auto& options : {size({}), size(8), size(8, 4), size({}, {}, {}, "2"), size({}, {}, "2", "2")}) {
    CHECK(error_of(options, broken) == expected);
  }
  CHECK(error_of(size({}, {}, {}, "gpu"), broken) == std::string("--nproc-per-node gpu: ") + expected);
  CHECK(error_of(size({}, {}, {}, "auto"), broken) == std::string("--nproc-per-node auto: ") + expected);
  CHECK(decide_sizes(size({}, {}, {}, "cpu"), broken)->ranks_on_node == std::vector<int>{4});
}

TEST_CASE("accelerators that are not counted are named, unless the user has counted processes") {
  auto other = machine(0);
  other.other_accelerators = "8 AMD GPUs";
  auto notices = [&](const SizeOptions& options) { return decide_sizes(options, other)->notices; };
  using Lines = std::vector<std::string>;
  CHECK(notices(size(8)) == Lines{"8 AMD GPUs here, which are accelerators that taas-run does not count: 8 ranks, each "
                                  "of which may choose one by LOCAL_RANK; --nproc-per-node N says how many there are "
                                  "to be"});
  CHECK_THAT(notices(size({})).at(0), ContainsSubstring("does not count: 1 rank, each"));
  CHECK_THAT(notices(size(16)).at(0), ContainsSubstring("16 ranks on 2 simulated nodes, each"));
  CHECK_THAT(notices(size({}, {}, {}, "auto")).at(0), ContainsSubstring("does not count: 4 ranks"));
  CHECK(notices(size({}, {}, {}, "8")).empty());
  CHECK(notices(size({}, {}, {}, "cpu")).empty());
}

TEST_CASE("many times more CPU ranks than cores are refused, and allowed on purpose") {
  auto counts = [](const SizeOptions& options, int cores) {
    return decide_sizes(options, machine(0, cores)).has_value();
  };
  CHECK(counts(size(16), 1));
  CHECK_FALSE(counts(size(17), 1));
  CHECK(counts(size(16), 2));
  CHECK_FALSE(counts(size(17), 2));
  CHECK(counts(size(32), 4));
  CHECK_FALSE(counts(size(33), 4));
  CHECK(counts(size({}, {}, {}, "64"), 2));  // processes, as torchrun would start them
  CHECK(counts(size({}, {}, "8", "8"), 2));
  CHECK_FALSE(counts(size({}, 8, "8"), 2));
  auto options = size(64);
  CHECK(error_of(options, machine(0)) ==
        "no GPU here: 64 CPU ranks on 4 cores are more than 8 for each core: --hosts or SLURM "
        "add machines, --oversubscribe runs them here");
  auto login = machine(0);
  login.submits_jobs = true;
  CHECK_THAT(error_of(options, login),
             ContainsSubstring("for each core: --slurm submits them as a job, --oversubscribe"));
  options.oversubscribe = true;
  CHECK(decide_sizes(options, machine(0))->ranks_on_node == std::vector<int>(8, 8));
  CHECK(decide_sizes(size(16), login)->notices ==
        std::vector<std::string>{
            "no GPU here: 16 CPU ranks with gloo on 2 simulated nodes; --slurm submits them as a job"});
}

TEST_CASE("more ranks than GPUs are refused with both numbers, and allowed on purpose") {
  auto refused = error_of(size(16), machine(8));
  CHECK(
      refused ==
      "16 ranks need 16 GPUs, and this machine has 8: --hosts or SLURM add machines, --oversubscribe lets ranks share "
      "GPUs");
  CHECK_THAT(error_of(size({}, {}, {}, "2"), machine(1)), ContainsSubstring("2 ranks need 2 GPUs"));
  auto options = size(16);
  options.oversubscribe = true;
  auto sizes = decide_sizes(options, machine(8));
  REQUIRE(sizes.has_value());
  CHECK(sizes->ranks_on_node == std::vector<int>(16, 1));
  CHECK(sizes->notices.at(0) ==
        "16 ranks share 8 GPUs, which is for trying, not for speed: each sees one GPU, as device 0");
}

TEST_CASE("ranks that share GPUs are nodes of their own unless the user says how many a node has") {
  auto nodes = [](SizeOptions options) {
    options.oversubscribe = true;
    return decide_sizes(options, machine(2)).value().ranks_on_node;
  };
  CHECK(nodes(size(4)) == std::vector<int>{1, 1, 1, 1});
  CHECK(nodes(size(2)) == std::vector<int>{2});
  CHECK(nodes(size(4, 2)) == std::vector<int>{2, 2});
  CHECK(nodes(size({}, {}, {}, "4")) == std::vector<int>{4});
  CHECK(nodes(size(4, {}, "2")) == std::vector<int>{2, 2});
}

TEST_CASE("impossible and contradicting sizes are named") {
  struct Row {
    SizeOptions options;
    const char* message;
  };
  const Row rows[] = {
      {size(0), "--gpus 0: at least 1 is needed"},
      {size(-4), "--gpus -4: at least 1 is needed"},
      {size(4, 0), "--gpus-per-node 0: at least 1 is needed"},
      {size({}, 4), "--gpus-per-node 4 says nothing by itself: add --gpus N"},
      {size({}, 4, {}, "8"), "--nproc-per-node 8 and --gpus-per-node 4 disagree: give one of them"},
      {size(12, {}, {}, "8"), "--gpus 12 and --nproc-per-node 8 disagree: 12 is not a multiple of 8"},
      {size(16, {}, "3", "8"), "--gpus 16 disagrees with --nnodes 3 times --nproc-per-node 8"},
      {size(2, {}, "3"), "--gpus 2 is less than --nnodes 3: a node would get nothing"},
      {size(16, 4, "2"), "--gpus 16 is more than --nnodes 2 times --gpus-per-node 4"},
      {size({}, {}, "0"), "--nnodes 0: not a number of nodes, such as 2, or a range, such as 2:4"},
      {size({}, {}, "two"), "--nnodes two: not a number of nodes, such as 2, or a range, such as 2:4"},
      {size({}, {}, "2:1"), "--nnodes 2:1: not a number of nodes, such as 2, or a range, such as 2:4"},
      {size({}, {}, "1:2:3"), "--nnodes 1:2:3: not a number of nodes, such as 2, or a range, such as 2:4"},
      {size({}, {}, "1:4"),
       "--nnodes 1:4: a range is for nodes that are other machines: name them with --hosts, or where they meet with "
       "--rdzv-endpoint, or use SLURM; else say one number"},
      {size({}, {}, {}, "many"), "--nproc-per-node many: not a number of processes, auto, gpu or cpu"},
      {size({}, {}, {}, "0"), "--nproc-per-node 0: not a number of processes, auto, gpu or cpu"},
      {size({}, {}, {}, "gpu"), "--nproc-per-node gpu: no GPU is visible here; say cpu or a number"},
      {size(2000000000), "2000000000 ranks are too many for one machine: at most 65536"},
      {size({}, {}, "2000000000", "2000000000"),
       "4000000000000000000 ranks are too many for one machine: at most 65536"},
  };
  for (const auto& row : rows) CHECK(error_of(row.options, machine(0)) == row.message);
}

TEST_CASE("slices of GPUs are devices, of which each rank has one") {
  Machine slices{"here", 3, 4, {{"CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b,MIG-c"}}};
  auto all = decide_sizes(size({}), slices);
  REQUIRE(all.has_value());
  CHECK(all->ranks_on_node == std::vector<int>{3});
  CHECK(all->notices == std::vector<std::string>{"3 MIG slices here: 3 ranks, each with one of them, as device 0"});
  CHECK(decide_sizes(size(3), slices)->ranks_on_node == std::vector<int>{1, 1, 1});
  auto several = size(2);
  several.devices_per_rank = 2;
  CHECK(error_of(several, slices) == "--devices-per-rank 2: CUDA shows a process one MIG slice");
}

TEST_CASE("who asks for more GPUs than CUDA shows of sliced ones is told how slices are named") {
  auto sliced = machine(1);
  sliced.sliced_gpus = 2;
  CHECK(error_of(size(4), sliced) ==
        "4 ranks need 4 GPUs, and CUDA shows 1 here: 2 GPUs are cut into MIG slices, and "
        "CUDA_VISIBLE_DEVICES=MIG-…,MIG-… with the names that nvidia-smi -L shows gives each rank one");
}

}  // namespace sizes_test
