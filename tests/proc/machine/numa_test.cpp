#include "proc/machine/numa.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "catch.hpp"

namespace numa_test {

using namespace taas;

namespace {

namespace fs = std::filesystem;

/// A made-up machine: cores of two CPUs each, which lie as the kernel numbers them, the second ones behind all first.
struct Tree {
  int nodes = 1;
  int nodes_of_socket = 1;
  int complexes_of_node = 1;
  int cores_of_complex = 2;

  Tree(int all, int of_socket, int complexes, int cores)
      : nodes(all), nodes_of_socket(of_socket), complexes_of_node(complexes), cores_of_complex(cores) {
    const int of_node = complexes_of_node * cores_of_complex;
    for (int node = 0; node < nodes; ++node) {
      const int first = node * of_node, second = first + nodes * of_node;
      write(fmt::format("devices/system/node/node{}/cpulist", node),
            fmt::format("{}-{},{}-{}\n", first, first + of_node - 1, second, second + of_node - 1));
      for (int core = 0; core < of_node; ++core) add_core(node, first + core, second + core, core / cores_of_complex);
    }
    write("devices/system/node/possible", fmt::format("0-{}\n", nodes - 1));
  }
  ~Tree() { fs::remove_all(folder); }

  void add_core(int node, int one, int two, int complex) {
    const int of_node = complexes_of_node * cores_of_complex;
    const int first = node * of_node + complex * cores_of_complex, second = first + nodes * of_node;
    for (int cpu : {one, two}) {
      auto at = fmt::format("devices/system/cpu/cpu{}/", cpu);
      write(at + "topology/physical_package_id", fmt::format("{}\n", node / nodes_of_socket));
      write(at + "topology/thread_siblings_list", fmt::format("{},{}\n", one, two));
      add_cache(at + "cache/index0/", 1, "Data", fmt::format("{},{}", one, two));
      add_cache(at + "cache/index1/", 1, "Instruction", fmt::format("{},{}", one, two));
      add_cache(at + "cache/index3/", 3, "Unified",
                fmt::format("{}-{},{}-{}", first, first + cores_of_complex - 1, second, second + cores_of_complex - 1));
    }
  }

  void add_cache(const std::string& at, int level, const char* type, const std::string& shared) {
    write(at + "level", fmt::format("{}\n", level));
    write(at + "type", fmt::format("{}\n", type));
    write(at + "shared_cpu_list", shared + "\n");
  }

  void add_gpu(const std::string& address, int node, const std::string& model, const std::string& uuid) {
    write("proc/driver/nvidia/gpus/" + address + "/information",
          "Model: \t\t " + model + "\nIRQ:   \t\t 35\nGPU UUID: \t " + uuid + "\nDevice Minor: \t 0\n");
    write("bus/pci/devices/" + address + "/numa_node", fmt::format("{}\n", node));
  }

  void write(const std::string& name, const std::string& text) {
    auto file = folder / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::vector<Cpu> cpus(std::set<int> usable = {}) const {
    if (usable.empty()) {
      for (int cpu = 0; cpu < 2 * nodes * complexes_of_node * cores_of_complex; ++cpu) usable.insert(cpu);
    }
    return read_cpus(usable, (folder / "devices/system").string());
  }
  std::optional<int> node_of(std::string_view gpu, const Environment& environment = {}) const {
    return numa_node_of_gpu(gpu, environment, (folder / "proc").string(), folder.string());
  }

  fs::path folder = fs::temp_directory_path() / fmt::format("taas-numa-{}-{}", ::getpid(), ++made);
  static inline int made = 0;
};

using Lists = std::vector<std::vector<int>>;

Lists bound(NumaBinding mode, const std::vector<Cpu>& cpus, const std::vector<int>& nodes) {
  return bind_to_cpus(mode, cpus, nodes).value();
}

}  // namespace

TEST_CASE("modes of binding have torchrun's names") {
  CHECK(numa_binding_of("node") == NumaBinding::kNode);
  CHECK(numa_binding_of("core-complex") == NumaBinding::kCoreComplex);
  CHECK_FALSE(numa_binding_of("core_complex").has_value());
  CHECK_FALSE(numa_binding_of("").has_value());
}

TEST_CASE("on a machine of one node all modes but the narrow ones are all CPUs") {
  Tree tree(1, 1, 2, 2);
  auto cpus = tree.cpus();
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(bound(NumaBinding::kNode, cpus, {0, 0}) == Lists{all, all});
  CHECK(bound(NumaBinding::kSocket, cpus, {0, 0}) == Lists{all, all});
  CHECK(bound(NumaBinding::kExclusive, cpus, {0, 0}) == Lists{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK(bound(NumaBinding::kExclusive, cpus, {0, 0, 0}) == Lists{{0, 1, 4, 5}, {2, 6}, {3, 7}});
  CHECK(bound(NumaBinding::kCoreComplex, cpus, {0, 0, 0}) == Lists{{0, 1, 4, 5}, {2, 3, 6, 7}, {0, 1, 4, 5}});
  CHECK(bound(NumaBinding::kNone, cpus, {0, 0}) == Lists{{}, {}});
}

TEST_CASE("on a machine of two nodes ranks are beside their GPUs") {
  Tree tree(2, 1, 1, 2);  // 0, 1, 4, 5 and 2, 3, 6, 7
  auto cpus = tree.cpus();
  CHECK(bound(NumaBinding::kNode, cpus, {1, 0}) == Lists{{2, 3, 6, 7}, {0, 1, 4, 5}});
  CHECK(bound(NumaBinding::kSocket, cpus, {1}) == Lists{{2, 3, 6, 7}});
  CHECK(bound(NumaBinding::kExclusive, cpus, {1, 0, 1}) == Lists{{2, 6}, {0, 1, 4, 5}, {3, 7}});
  CHECK(spread_over_nodes(cpus, 4) == std::vector<int>{0, 0, 1, 1});
  CHECK(spread_over_nodes(cpus, 1) == std::vector<int>{0});
  auto few = bind_to_cpus(NumaBinding::kExclusive, cpus, {1, 1, 1});
  CHECK(few.error().message == "NUMA node 1 has 2 cores that may be used here, for 3 ranks");
}

TEST_CASE("on a machine of eight nodes, four of each socket, the modes differ") {
  Tree tree(8, 4, 2, 4);  // 64 cores
  auto cpus = tree.cpus();
  CHECK(cpus.size() == 128);
  auto node = bound(NumaBinding::kNode, cpus, {5}).front();
  CHECK(node.size() == 16);
  CHECK(node.front() == 40);
  auto socket = bound(NumaBinding::kSocket, cpus, {5}).front();
  CHECK(socket.size() == 64);
  CHECK(socket.front() == 32);
  CHECK(bound(NumaBinding::kCoreComplex, cpus, {5, 5}) ==
        Lists{{40, 41, 42, 43, 104, 105, 106, 107}, {44, 45, 46, 47, 108, 109, 110, 111}});
  CHECK(spread_over_nodes(cpus, 8) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("only CPUs that this process may use count, and the largest core complex comes first") {
  Tree tree(2, 1, 2, 2);  // node 0: complexes 0, 1 and 2, 3, with 8, 9 and 10, 11
  auto cpus = tree.cpus({1, 2, 3, 10, 11});
  CHECK(bound(NumaBinding::kNode, cpus, {0}) == Lists{{1, 2, 3, 10, 11}});
  CHECK(bound(NumaBinding::kCoreComplex, cpus, {0, 0}) == Lists{{2, 3, 10, 11}, {1}});
  CHECK_FALSE(bind_to_cpus(NumaBinding::kNode, cpus, {1}).has_value());
  CHECK(spread_over_nodes(cpus, 2) == std::vector<int>{0, 0});
}

TEST_CASE("a GPU's node is found by its UUID, and by a number where numbers are certain") {
  Tree tree(2, 1, 1, 2);
  tree.add_gpu("0000:c1:00.0", 1, "NVIDIA H100 80GB HBM3", "GPU-8a1b0000");
  tree.add_gpu("0000:17:00.0", 0, "NVIDIA H100 80GB HBM3", "GPU-5e2f0000");
  CHECK(tree.node_of("0") == 0);
  CHECK(tree.node_of("1") == 1);
  CHECK(tree.node_of("GPU-8a1b") == 1);
  CHECK_FALSE(tree.node_of("2").has_value());
  CHECK_FALSE(tree.node_of("GPU-ffff").has_value());
  CHECK_FALSE(tree.node_of("MIG-8a1b").has_value());
  tree.add_gpu("0000:a0:00.0", -1, "NVIDIA T4", "GPU-77770000");
  CHECK_FALSE(tree.node_of("1").has_value());
  CHECK(tree.node_of("GPU-7777") == 0);  // -1: the machine has one node
  CHECK(tree.node_of("2", {{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}}) == 1);
}

TEST_CASE("this machine's own CPUs are read") {
  auto cpus = read_cpus(usable_cpus());
  REQUIRE_FALSE(cpus.empty());
  auto all = bound(NumaBinding::kSocket, cpus, {cpus.front().node}).front();
  CHECK(std::ranges::find(all, cpus.front().number) != all.end());
}

}  // namespace numa_test
