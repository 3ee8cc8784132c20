#include "proc/machine/numa.hpp"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

namespace fs = std::filesystem;

/// As many as kernels are built for at most: one whose own masks are larger would refuse a smaller one.
struct ProcessorSet {
  cpu_set_t parts[8];
};
constexpr int kProcessorsInSet = 8 * CPU_SETSIZE;

struct Node {
  int number = 0;
  Processors processors;                ///< usable ones
  std::vector<Processors> groups = {};  ///< of these, what the binding shares out
};

/// Nodes with processors that may be used.
struct Nodes {
  std::vector<Node> usable;
  bool one = true;  ///< the machine has no others
};

/// A GPU that this process may open.
struct Gpu {
  std::string address;  ///< "0000:17:00.0"
  std::string uuid;
  std::string model;
};

/// "0-3,8", as sysfs lists numbers.
std::vector<int> read_list(const std::string& file) {
  std::vector<int> numbers;
  auto text = read_file(file);
  if (!text) return numbers;
  for (auto part : split(trim(*text, " \n"), ',')) {
    const auto* end = part.data() + part.size();
    int first = 0;
    auto [rest, problem] = std::from_chars(part.data(), end, first);
    if (problem != std::errc()) continue;
    int last = first;
    if (rest != end && *rest == '-') std::from_chars(rest + 1, end, last);
    for (int number = first; number <= std::min(last, kProcessorsInSet - 1); ++number) numbers.push_back(number);
  }
  return numbers;
}

int read_number(const std::string& file, int otherwise) {
  auto text = read_file(file);
  int number = otherwise;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
}

/// Those that are memory alone do not count. A kernel that knows of no nodes has one.
Nodes read_nodes(const Processors& usable, const NumaFiles& files) {
  Nodes nodes;
  const auto folder = files.sys + "/devices/system/node";
  const auto numbers = read_list(folder + "/has_cpu");
  nodes.one = numbers.size() < 2;
  for (int number : numbers) {
    Node node{number, {}};
    std::ranges::copy_if(read_list(fmt::format("{}/node{}/cpulist", folder, number)),
                         std::back_inserter(node.processors),
                         [&](int one) { return std::ranges::find(usable, one) != usable.end(); });
    if (!node.processors.empty()) nodes.usable.push_back(std::move(node));
  }
  if (nodes.usable.empty()) nodes.usable.push_back({0, usable});
  return nodes;
}

std::string processor_file(const NumaFiles& files, int processor, const char* name) {
  return fmt::format("{}/devices/system/cpu/cpu{}/{}", files.sys, processor, name);
}

int socket_of(const NumaFiles& files, int processor) {
  return read_number(processor_file(files, processor, "topology/physical_package_id"), 0);
}

/// The first of the processors that are one physical core.
int core_of(const NumaFiles& files, int processor) {
  auto siblings = read_list(processor_file(files, processor, "topology/thread_siblings_list"));
  return siblings.empty() ? processor : siblings.front();
}

/// The first of the processors that share the last-level cache.
int cache_of(const NumaFiles& files, int processor) {
  int last_level = -1;
  int first = processor;
  std::error_code failed;
  const auto folder = processor_file(files, processor, "cache");
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    auto cache = entry->path().string();
    int level = read_number(cache + "/level", -1);
    auto type = read_file(cache + "/type");
    if (level <= last_level || !type || type->starts_with("Instruction")) continue;
    auto sharing = read_list(cache + "/shared_cpu_list");
    if (sharing.empty()) continue;
    last_level = level;
    first = sharing.front();
  }
  return first;
}

std::vector<Processors> grouped(const Processors& processors, const NumaFiles& files,
                                int (*group_of)(const NumaFiles&, int)) {
  std::map<int, Processors> groups;
  for (int processor : processors) groups[group_of(files, processor)].push_back(processor);
  std::vector<Processors> found;
  for (auto& [first, members] : groups) found.push_back(std::move(members));
  return found;
}

/// "GPU UUID:  GPU-…" is a line of what the driver says of a GPU.
std::string value_in(const std::string& text, std::string_view name) {
  for (auto line : split(text, '\n')) {
    if (line.starts_with(name)) return std::string(trim(line.substr(name.size()), ": \t"));
  }
  return "";
}

/// In the order of the bus. A batch system or a container withholds device files of others' GPUs; where there are none
/// yet, CUDA makes them.
std::vector<Gpu> read_gpus(const NumaFiles& files) {
  std::vector<Gpu> all, with_file;
  std::error_code failed;
  for (fs::directory_iterator entry(files.driver + "/gpus", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    auto text = read_file((entry->path() / "information").string());
    if (!text) continue;
    all.push_back({entry->path().filename().string(), value_in(*text, "GPU UUID"), value_in(*text, "Model")});
    auto file = files.dev + "/nvidia" + value_in(*text, "Device Minor");
    if (::access(file.c_str(), R_OK | W_OK) == 0) with_file.push_back(all.back());
  }
  auto& found = with_file.empty() ? all : with_file;
  std::ranges::sort(found, {}, &Gpu::address);
  return std::move(found);
}

/// On the bus, "0000:17:00.0".
Result<std::string> address_of(const std::string& name, const NumaRequest& request, const std::vector<Gpu>& gpus) {
  std::size_t number = 0;
  auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = problem == std::errc() && rest == name.data() + name.size();
  if (is_number && request.has_slices) {
    return usage_error(fmt::format("which GPU CUDA numbers {} is not certain where GPUs are cut into slices", name));
  }
  if (is_number && number < gpus.size()) {
    const bool alike = std::ranges::all_of(gpus, [&](const auto& gpu) { return gpu.model == gpus.front().model; });
    if (alike || request.order == GpuOrder::kBus) return gpus[number].address;
    return usage_error(fmt::format(
        "which GPU CUDA numbers {} is not certain among different models: set CUDA_DEVICE_ORDER=PCI_BUS_ID", name));
  }
  auto named = std::ranges::find_if(gpus, [&](const auto& gpu) { return !is_number && gpu.uuid.starts_with(name); });
  if (named != gpus.end()) return named->address;
  return usage_error(fmt::format("the driver does not say on which NUMA node GPU {} is", name));
}

/// An index of `nodes`.
Result<std::size_t> node_of_gpu(const std::string& name, const NumaRequest& request, const std::vector<Gpu>& gpus,
                                const std::vector<Node>& nodes, const NumaFiles& files) {
  auto address = address_of(name, request, gpus);
  if (!address) return address.error();
  int number = read_number(fmt::format("{}/bus/pci/devices/{}/numa_node", files.sys, *address), -1);
  if (number < 0) return usage_error(fmt::format("the kernel does not say on which NUMA node GPU {} is", name));
  auto node = std::ranges::find(nodes, number, &Node::number);
  if (node != nodes.end()) return static_cast<std::size_t>(node - nodes.begin());
  return usage_error(
      fmt::format("this process may use no processor of NUMA node {}, where GPU {} is: a batch system has to give it "
                  "the processors of all its GPUs (srun --cpu-bind=none)",
                  number, name));
}

/// Of one of so many ranks that are spread over all processors; an index of `nodes`.
std::size_t node_of_cpu_rank(std::size_t index, std::size_t ranks, const std::vector<Node>& nodes) {
  std::size_t all = 0;
  for (const auto& node : nodes) all += node.processors.size();
  auto processor = index * all / ranks;
  std::size_t node = 0;
  while (processor >= nodes[node].processors.size()) processor -= nodes[node++].processors.size();
  return node;
}

/// The node of each rank, as an index of those that are usable.
Result<std::vector<std::size_t>> nodes_of_ranks(const NumaRequest& request, const Nodes& nodes,
                                                const NumaFiles& files) {
  const auto gpus = nodes.one ? std::vector<Gpu>() : read_gpus(files);
  std::vector<std::size_t> found;
  for (const auto& gpu : request.gpus) {
    if (!gpu || nodes.one) {
      found.push_back(node_of_cpu_rank(found.size(), request.gpus.size(), nodes.usable));
      continue;
    }
    auto node = node_of_gpu(*gpu, request, gpus, nodes.usable, files);
    if (!node) return node.error();
    found.push_back(*node);
  }
  return found;
}

Processors on_socket(const Node& node, const std::vector<Node>& nodes, const NumaFiles& files) {
  Processors found;
  int socket = socket_of(files, node.processors.front());
  for (const auto& other : nodes) {
    if (socket_of(files, other.processors.front()) != socket) continue;
    found.insert(found.end(), other.processors.begin(), other.processors.end());
  }
  return found;
}

/// The share of one of so many ranks of a node.
Result<Processors> share_of(const Node& node, std::size_t index, std::size_t ranks) {
  const auto& cores = node.groups;
  if (cores.size() < ranks) {
    return usage_error(fmt::format("NUMA node {} has {} for {}: start fewer, or use --numa-binding node", node.number,
                                   plural(static_cast<std::int64_t>(cores.size()), "core"),
                                   plural(static_cast<std::int64_t>(ranks), "rank")));
  }
  auto begin = index * (cores.size() / ranks) + std::min(index, cores.size() % ranks);
  auto count = cores.size() / ranks + (index < cores.size() % ranks ? 1 : 0);
  Processors share;
  for (auto core = begin; core < begin + count; ++core) {
    share.insert(share.end(), cores[core].begin(), cores[core].end());
  }
  return share;
}

/// Into cores, or core complexes, the largest first.
void group(std::vector<Node>& nodes, NumaBinding binding, const NumaFiles& files) {
  for (auto& node : nodes) {
    if (binding == NumaBinding::kExclusive) node.groups = grouped(node.processors, files, core_of);
    if (binding != NumaBinding::kCoreComplex) continue;
    node.groups = grouped(node.processors, files, cache_of);
    std::ranges::stable_sort(node.groups, std::greater(), [](const auto& members) { return members.size(); });
  }
}

}  // namespace

Result<std::vector<Processors>> bind_to_numa(const NumaRequest& request, const NumaFiles& files) {
  auto nodes = read_nodes(request.usable, files);
  auto places = nodes_of_ranks(request, nodes, files);
  if (!places) return places.error();
  group(nodes.usable, request.binding, files);
  std::vector<Processors> bound;
  std::map<std::size_t, std::size_t> before;  // ranks of each node
  for (auto place : *places) {
    const auto& node = nodes.usable[place];
    const auto index = before[place]++;
    Result<Processors> own = request.usable;
    if (request.binding == NumaBinding::kNode) own = node.processors;
    if (request.binding == NumaBinding::kSocket) own = on_socket(node, nodes.usable, files);
    if (request.binding == NumaBinding::kCoreComplex) own = node.groups[index % node.groups.size()];
    if (request.binding == NumaBinding::kExclusive) {
      own = share_of(node, index, static_cast<std::size_t>(std::ranges::count(*places, place)));
    }
    if (!own) return own.error();
    std::ranges::sort(*own);
    bound.push_back(std::move(*own));
  }
  return bound;
}

bool bind_this_thread(const Processors& processors) {
  ProcessorSet set{};
  for (int processor : processors) CPU_SET_S(static_cast<std::size_t>(processor), sizeof set, set.parts);
  if (::sched_setaffinity(0, sizeof set, set.parts) != 0) return false;
  ::syscall(SYS_set_mempolicy, MPOL_LOCAL, nullptr, 0);  // a container may refuse it: it is what kernels do anyway
  return true;
}

}  // namespace taas
