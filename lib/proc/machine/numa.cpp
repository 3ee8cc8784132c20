#include "proc/machine/numa.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

namespace fs = std::filesystem;

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

/// Empty: there is no such file.
std::string text_of(const fs::path& file) {
  auto text = read_file(file.string());
  return text ? std::move(*text) : std::string();
}

std::optional<int> read_number(const fs::path& file) { return number_in(text_of(file)); }

/// "0-2,4,6-7" of a file.
std::vector<int> read_list(const fs::path& file) {
  std::vector<int> numbers;
  auto text = text_of(file);
  for (auto range : split(trim(text, " \n"), ',')) {
    auto first = number_in(range);
    if (!first) continue;
    auto dash = range.find('-');
    auto last = dash == range.npos ? first : number_in(range.substr(dash + 1));
    for (int number = *first; number <= last.value_or(*first); ++number) numbers.push_back(number);
  }
  return numbers;
}

int lowest(const std::vector<int>& numbers, int otherwise) {
  return numbers.empty() ? otherwise : *std::ranges::min_element(numbers);
}

/// The lowest CPU of those that share this one's last cache for data.
int complex_of(const fs::path& cpu, int number) {
  int level = 0, complex = number;
  std::error_code none;
  for (fs::directory_iterator entry(cpu / "cache", none), end; !none && entry != end; entry.increment(none)) {
    auto kind = text_of(entry->path() / "type");
    auto here = read_number(entry->path() / "level").value_or(0);
    if (here <= level || kind.starts_with("Instruction")) continue;
    level = here;
    complex = lowest(read_list(entry->path() / "shared_cpu_list"), number);
  }
  return complex;
}

/// By address: the order of the bus, which is also the order of the texts.
struct DriverGpu {
  std::string address;
  std::string model;
  std::string uuid;
};

std::vector<DriverGpu> gpus_of_driver(const fs::path& folder) {
  std::vector<DriverGpu> gpus;
  std::error_code none;
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none)) {
    DriverGpu gpu{entry->path().filename().string(), {}, {}};
    auto text = text_of(entry->path() / "information");
    for (auto line : split(text, '\n')) {
      auto colon = line.find(':');
      if (colon == line.npos) continue;
      auto value = std::string(trim(line.substr(colon + 1), " \t"));
      if (line.starts_with("Model")) gpu.model = value;
      if (line.starts_with("GPU UUID")) gpu.uuid = value;
    }
    gpus.push_back(std::move(gpu));
  }
  std::ranges::sort(gpus, {}, &DriverGpu::address);
  return gpus;
}

const DriverGpu* find_gpu(std::string_view name, const std::vector<DriverGpu>& gpus, const Environment& environment) {
  if (name.starts_with("GPU-")) {
    auto found = std::ranges::find_if(gpus, [&](const auto& gpu) { return gpu.uuid.starts_with(name); });
    return found == gpus.end() ? nullptr : &*found;
  }
  auto index = number_in(name);
  auto order = find_variable(environment, "CUDA_DEVICE_ORDER");
  const bool by_bus = order && *order == "PCI_BUS_ID";
  const bool alike = std::ranges::all_of(gpus, [&](const auto& gpu) { return gpu.model == gpus.front().model; });
  if (!index || *index < 0 || static_cast<std::size_t>(*index) >= gpus.size() || !(by_bus || alike)) return nullptr;
  return &gpus[static_cast<std::size_t>(*index)];
}

using Group = std::pair<int, std::vector<int>>;  // by its lowest CPU

std::vector<Group> grouped(const std::vector<Cpu>& cpus, int node, int Cpu::*by) {
  std::map<int, std::vector<int>> groups;
  for (const auto& cpu : cpus) {
    if (cpu.node == node) groups[cpu.*by].push_back(cpu.number);
  }
  return {groups.begin(), groups.end()};
}

std::vector<int> cpus_where(const std::vector<Cpu>& cpus, int Cpu::*what, int value) {
  std::vector<int> numbers;
  for (const auto& cpu : cpus) {
    if (cpu.*what == value) numbers.push_back(cpu.number);
  }
  return numbers;
}

std::vector<int> cpus_of_socket(const std::vector<Cpu>& cpus, int node) {
  auto any = std::ranges::find(cpus, node, &Cpu::node);
  return any == cpus.end() ? std::vector<int>() : cpus_where(cpus, &Cpu::socket, any->socket);
}

/// Whole cores; the first ranks have one more where they do not come out even.
std::vector<int> share_of_cores(const std::vector<Group>& cores, std::size_t place, std::size_t ranks) {
  const auto each = cores.size() / ranks, more = cores.size() % ranks;
  const auto begin = place * each + std::min(place, more);
  const auto end = begin + each + (place < more ? 1 : 0);
  std::vector<int> numbers;
  for (auto core = begin; core < end; ++core) {
    numbers.insert(numbers.end(), cores[core].second.begin(), cores[core].second.end());
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// The largest first.
std::vector<int> complex_for(std::vector<Group> complexes, std::size_t place) {
  std::ranges::stable_sort(complexes, std::greater(), [](const Group& group) { return group.second.size(); });
  return complexes.empty() ? std::vector<int>() : complexes[place % complexes.size()].second;
}

}  // namespace

std::set<int> usable_cpus() {
  std::set<int> usable;
  constexpr int kMost = 8192;
  auto* mask = CPU_ALLOC(kMost);
  const auto bytes = CPU_ALLOC_SIZE(kMost);
  if (::sched_getaffinity(0, bytes, mask) == 0) {
    for (int cpu = 0; cpu < kMost; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, mask)) usable.insert(cpu);
    }
  }
  CPU_FREE(mask);
  return usable;
}

std::vector<Cpu> read_cpus(const std::set<int>& usable, const std::string& system) {
  std::map<int, int> nodes;
  std::error_code none;
  for (fs::directory_iterator entry(fs::path(system) / "node", none), end; !none && entry != end;
       entry.increment(none)) {
    auto name = entry->path().filename().string();
    auto node = name.starts_with("node") ? number_in(std::string_view(name).substr(4)) : std::nullopt;
    if (!node) continue;
    for (int cpu : read_list(entry->path() / "cpulist")) nodes[cpu] = *node;
  }
  std::vector<Cpu> cpus;
  for (int number : usable) {
    auto folder = fs::path(system) / "cpu" / fmt::format("cpu{}", number);
    if (!fs::exists(folder, none)) continue;
    auto node = nodes.find(number);
    cpus.push_back({number, node == nodes.end() ? 0 : node->second,
                    read_number(folder / "topology/physical_package_id").value_or(0),
                    lowest(read_list(folder / "topology/thread_siblings_list"), number), complex_of(folder, number)});
  }
  return cpus;
}

std::optional<int> numa_node_of_gpu(std::string_view gpu, const Environment& environment, const std::string& proc,
                                    const std::string& sys) {
  const auto gpus = gpus_of_driver(fs::path(proc) / "driver/nvidia/gpus");
  const auto* found = find_gpu(gpu, gpus, environment);
  if (found == nullptr) return std::nullopt;
  auto node = read_number(fs::path(sys) / "bus/pci/devices" / found->address / "numa_node");
  return node ? std::optional(std::max(*node, 0)) : std::nullopt;  // -1 where there is but one
}

std::vector<int> spread_over_nodes(const std::vector<Cpu>& cpus, int ranks) {
  std::set<int> all;
  for (const auto& cpu : cpus) all.insert(cpu.node);
  const std::vector<int> nodes(all.begin(), all.end());
  std::vector<int> spread;
  for (int rank = 0; rank < ranks && !nodes.empty(); ++rank) {
    spread.push_back(nodes[static_cast<std::size_t>(rank) * nodes.size() / static_cast<std::size_t>(ranks)]);
  }
  return spread;
}

Result<std::vector<std::vector<int>>> bind_to_cpus(NumaBinding binding, const std::vector<Cpu>& cpus,
                                                   const std::vector<int>& nodes_of_ranks) {
  std::map<int, std::size_t> ranks_of_node, before;
  for (int node : nodes_of_ranks) ++ranks_of_node[node];
  std::vector<std::vector<int>> bound;
  for (int node : nodes_of_ranks) {
    const auto place = before[node]++;
    const auto cores = grouped(cpus, node, &Cpu::core);
    if (cores.empty()) return usage_error(fmt::format("NUMA node {} has no CPU that may be used here", node));
    if (binding == NumaBinding::kExclusive && cores.size() < ranks_of_node[node]) {
      return usage_error(fmt::format("NUMA node {} has {} that may be used here, for {}", node,
                                     plural(static_cast<std::int64_t>(cores.size()), "core"),
                                     plural(static_cast<std::int64_t>(ranks_of_node[node]), "rank")));
    }
    switch (binding) {
      case NumaBinding::kNone:
        bound.emplace_back();
        break;
      case NumaBinding::kNode:
        bound.push_back(cpus_where(cpus, &Cpu::node, node));
        break;
      case NumaBinding::kSocket:
        bound.push_back(cpus_of_socket(cpus, node));
        break;
      case NumaBinding::kExclusive:
        bound.push_back(share_of_cores(cores, place, ranks_of_node[node]));
        break;
      case NumaBinding::kCoreComplex:
        bound.push_back(complex_for(grouped(cpus, node, &Cpu::complex), place));
        break;
    }
  }
  return bound;
}

}  // namespace taas
