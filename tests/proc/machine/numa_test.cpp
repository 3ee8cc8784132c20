#include "proc/machine/numa.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "proc/processes.hpp"

namespace numa_test {
using namespace taas;
using namespace taas::test;

namespace fs = std::filesystem;

/// A machine whose nodes have `cores` physical cores of two threads each, as Linux numbers them: first one thread of
/// each core, then the others. Caches are shared by `cores_per_cache`, sockets by `nodes_per_socket`.
struct Shape {
  int nodes = 2;
  int cores = 8;
  int nodes_per_socket = 1;
  int cores_per_cache = 4;
};

class FakeMachine {
 public:
  explicit FakeMachine(Shape shape) : usable(all(shape)), shape_(shape) {
    write("sys/devices/system/node/has_cpu", fmt::format("0-{}\n", shape.nodes - 1));
    for (int node = 0; node < shape.nodes; ++node) add_node(node);
  }

  void add_gpu(const std::string& address, int node, const std::string& model = "H100", bool can_open = true) {
    const auto number = gpus_++;
    write("sys/bus/pci/devices/" + address + "/numa_node", fmt::format("{}\n", node));
    write("driver/gpus/" + address + "/information",
          fmt::format("Model: \t\t NVIDIA {}\nIRQ:   \t\t 31\nGPU UUID: \t GPU-{}abc-de\nDevice Minor: \t {}\n", model,
                      number, number));
    if (can_open) write(fmt::format("dev/nvidia{}", number), "");
  }

  [[nodiscard]] Result<std::vector<Processors>> bind(NumaBinding binding, std::vector<std::optional<std::string>> gpus,
                                                     GpuOrder order = GpuOrder::kFastestFirst) const {
    return bind_to_numa({binding, std::move(gpus), order, has_slices, usable}, files());
  }

  Processors usable;
  bool has_slices = false;

 private:
  static Processors all(Shape shape) {
    Processors every(static_cast<std::size_t>(2 * shape.nodes * shape.cores));
    std::iota(every.begin(), every.end(), 0);
    return every;
  }

  [[nodiscard]] NumaFiles files() const {
    return {path("sys").string(), path("driver").string(), path("dev").string()};
  }

  [[nodiscard]] fs::path path(const std::string& name) const { return fs::path(folder_.path()) / name; }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(path(name).parent_path());
    std::ofstream(path(name)) << text;
  }

  void add_node(int node) {
    const int half = shape_.nodes * shape_.cores;
    const int first = node * shape_.cores;
    write(fmt::format("sys/devices/system/node/node{}/cpulist", node),
          fmt::format("{}-{},{}-{}\n", first, first + shape_.cores - 1, half + first, half + first + shape_.cores - 1));
    for (int core = first; core < first + shape_.cores; ++core) {
      const int cache = core / shape_.cores_per_cache * shape_.cores_per_cache;
      for (int processor : {core, half + core}) {
        const auto folder = fmt::format("sys/devices/system/cpu/cpu{}/", processor);
        write(folder + "topology/physical_package_id", fmt::format("{}\n", node / shape_.nodes_per_socket));
        write(folder + "topology/thread_siblings_list", fmt::format("{},{}\n", core, half + core));
        add_cache(folder + "cache/index0/", 1, "Data", fmt::format("{},{}", core, half + core));
        add_cache(folder + "cache/index1/", 9, "Instruction", fmt::format("0-{}", 2 * half - 1));
        const int last = cache + shape_.cores_per_cache - 1;
        add_cache(folder + "cache/index3/", 3, "Unified",
                  fmt::format("{}-{},{}-{}", cache, last, half + cache, half + last));
      }
    }
  }

  void add_cache(const std::string& folder, int level, const char* type, const std::string& sharing) const {
    write(folder + "level", fmt::format("{}\n", level));
    write(folder + "type", fmt::format("{}\n", type));
    write(folder + "shared_cpu_list", sharing + "\n");
  }

  TemporaryFolder folder_;
  Shape shape_;
  int gpus_ = 0;
};

/// "0-3,16-19 4-7": as people write processors of ranks.
std::string shown(const Result<std::vector<Processors>>& bound) {
  if (!bound.has_value()) return bound.error().message;
  std::vector<std::string> ranks;
  for (const auto& processors : *bound) {
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < processors.size();) {
      auto end = i;
      while (end + 1 < processors.size() && processors[end + 1] == processors[end] + 1) ++end;
      runs.push_back(i == end ? std::to_string(processors[i]) : fmt::format("{}-{}", processors[i], processors[end]));
      i = end + 1;
    }
    ranks.push_back(fmt::format("{}", fmt::join(runs, ",")));
  }
  return fmt::format("{}", fmt::join(ranks, " "));
}

class MachineWithGpus : public FakeMachine {
 public:
  MachineWithGpus(Shape shape, const std::vector<int>& nodes) : FakeMachine(shape) {
    for (std::size_t i = 0; i < nodes.size(); ++i) add_gpu(fmt::format("0000:{:x}0:00.0", i + 1), nodes[i]);
  }
};

TEST_CASE("a machine with one NUMA node, which says -1 of its GPUs") {
  MachineWithGpus machine({.nodes = 1}, {-1, -1});
  CHECK(shown(machine.bind(NumaBinding::kNode, {"0", "1"})) == "0-15 0-15");
  CHECK(shown(machine.bind(NumaBinding::kSocket, {"0", "1"})) == "0-15 0-15");
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {"0", "1"})) == "0-3,8-11 4-7,12-15");
  CHECK(shown(machine.bind(NumaBinding::kCoreComplex, {"0", "1"})) == "0-3,8-11 4-7,12-15");
}

TEST_CASE("ranks are on the node of their GPU, whatever the order of the GPUs") {
  MachineWithGpus machine({.nodes = 2}, {1, 1, 0, 0});
  CHECK(shown(machine.bind(NumaBinding::kNode, {"0", "1", "2", "3"})) == "8-15,24-31 8-15,24-31 0-7,16-23 0-7,16-23");
  CHECK(shown(machine.bind(NumaBinding::kNode, {"GPU-2abc", "GPU-0abc-de"})) == "0-7,16-23 8-15,24-31");
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {"0", "2", "1"})) == "8-11,24-27 0-7,16-23 12-15,28-31");
  CHECK(shown(machine.bind(NumaBinding::kCoreComplex, {"0", "1", "0"})) == "8-11,24-27 12-15,28-31 8-11,24-27");
}

TEST_CASE("eight nodes on two sockets") {
  MachineWithGpus machine({.nodes = 8, .cores = 4, .nodes_per_socket = 4}, {3, 2, 1, 0, 7, 6, 5, 4});
  CHECK(shown(machine.bind(NumaBinding::kNode, {"0", "4"})) == "12-15,44-47 28-31,60-63");
  CHECK(shown(machine.bind(NumaBinding::kSocket, {"0", "4"})) == "0-15,32-47 16-31,48-63");
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {"0", "1"})) == "12-15,44-47 8-11,40-43");
}

TEST_CASE("cores that do not divide go to the first ranks, and too few are an error") {
  MachineWithGpus machine({.nodes = 1, .cores = 5, .cores_per_cache = 5}, {0});
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {"0", "0", "0"})) == "0-1,5-6 2-3,7-8 4,9");
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {"0", "0", "0", "0", "0", "0"})) ==
        "NUMA node 0 has 5 cores for 6 ranks: start fewer, or use --numa-binding node");
}

TEST_CASE("what GPUs are matters only where there are several nodes, and then has to be known") {
  MachineWithGpus one({.nodes = 1}, {-1});
  CHECK(shown(one.bind(NumaBinding::kNode, {"0", "MIG-1", "7"})) == "0-15 0-15 0-15");
  MachineWithGpus two({.nodes = 2}, {-1, 1});
  CHECK(shown(two.bind(NumaBinding::kNode, {"0"})) == "the kernel does not say on which NUMA node GPU 0 is");
  CHECK(shown(two.bind(NumaBinding::kNode, {"1"})) == "8-15,24-31");
  CHECK(shown(two.bind(NumaBinding::kNode, {"MIG-1"})) == "the driver does not say on which NUMA node GPU MIG-1 is");
  two.has_slices = true;
  CHECK(shown(two.bind(NumaBinding::kNode, {"1"})) ==
        "which GPU CUDA numbers 1 is not certain where GPUs are cut into slices");
}

TEST_CASE("ranks on the CPU are spread over the processors that may be used") {
  FakeMachine machine({.nodes = 2});
  CHECK(shown(machine.bind(NumaBinding::kNode, {{}, {}, {}})) == "0-7,16-23 0-7,16-23 8-15,24-31");
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {{}, {}, {}, {}})) == "0-3,16-19 4-7,20-23 8-11,24-27 12-15,28-31");
  machine.usable = {0, 8, 9, 10, 11, 12, 13, 14, 15};
  CHECK(shown(machine.bind(NumaBinding::kExclusive, {{}, {}, {}, {}})) == "0 8-10 11-13 14-15");
}

TEST_CASE("only processors that this process may use are given") {
  MachineWithGpus machine({.nodes = 2}, {0, 1});
  machine.usable = {2, 3, 9, 25};
  CHECK(shown(machine.bind(NumaBinding::kNode, {"0", "1"})) == "2-3 9,25");
  CHECK(shown(machine.bind(NumaBinding::kSocket, {"0", "1"})) == "2-3 9,25");
  machine.usable = {2, 3};
  CHECK(shown(machine.bind(NumaBinding::kNode, {"1"})) ==
        "this process may use no processor of NUMA node 1, where GPU 1 is: a batch system has to give it the "
        "processors of all its GPUs (srun --cpu-bind=none)");
}

TEST_CASE("GPUs are counted as CUDA counts those that this process may open") {
  FakeMachine machine({.nodes = 2});
  machine.add_gpu("0000:10:00.0", 0, "H100", false);
  machine.add_gpu("0000:20:00.0", 1);
  CHECK(shown(machine.bind(NumaBinding::kNode, {"0"})) == "8-15,24-31");
  CHECK(shown(machine.bind(NumaBinding::kNode, {"1"})) == "the driver does not say on which NUMA node GPU 1 is");
  machine.add_gpu("0000:08:00.0", 0, "T4");
  CHECK(shown(machine.bind(NumaBinding::kNode, {"1"})) ==
        "which GPU CUDA numbers 1 is not certain among different models: set CUDA_DEVICE_ORDER=PCI_BUS_ID");
  CHECK(shown(machine.bind(NumaBinding::kNode, {"1"}, GpuOrder::kBus)) == "8-15,24-31");
}

TEST_CASE("a kernel without NUMA has one node") {
  TemporaryFolder nothing;
  NumaFiles files{nothing.path(), nothing.path(), nothing.path()};
  CHECK(shown(bind_to_numa({NumaBinding::kNode, {std::nullopt}, {}, {}, {0, 1, 5}}, files)) == "0-1,5");
  CHECK(shown(bind_to_numa({NumaBinding::kExclusive, {{}, {}}, {}, {}, {0, 1, 5}}, files)) == "0-1 5");
}

TEST_CASE("the processors of this thread are those that the kernel says") {
  cpu_set_t set;
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  Processors expected;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(static_cast<std::size_t>(processor), &set)) expected.push_back(processor);
  }
  CHECK(usable_processors() == expected);
}

TEST_CASE("a process is started on its processors, with memory of its own node") {
  auto request =
      shell("grep Cpus_allowed_list /proc/self/status; grep -q ' local ' /proc/self/numa_maps && echo local");
  request.processors = {usable_processors().back()};
  std::string expected = fmt::format("Cpus_allowed_list:\t{}\n", request.processors.front());
  const bool may_choose = ::syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0) == 0;
  if (may_choose) expected += "local\n";
  CHECK(output_of(request) == expected);
}

TEST_CASE("processors that are not there are an error, and no process is left") {
  auto request = shell("exit 0");
  request.processors = {8191};
  auto child = spawn(request);
  REQUIRE(!child.has_value());
  CHECK(child.error().message == "cannot bind /bin/sh to its processors: Invalid argument");
}

}  // namespace numa_test
