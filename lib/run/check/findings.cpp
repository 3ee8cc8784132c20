#include "run/check/findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "run/events/words.hpp"

namespace taas::run {
namespace {

constexpr std::int64_t kSmallestShm = 16 * kMiB;    // for one rank with a DataLoader that has workers
constexpr std::int64_t kDockersShm = 64 * kMiB;     // which is too small for most batches of images
constexpr std::int64_t kLeastOutput = 64 * kMiB;    // free, below which logs alone may fill it
constexpr std::int64_t kSmallOutput = kGiB;         // below which a checkpoint hardly fits
constexpr double kSlowOutput = 0.5 * kMiB;          // bytes a second
constexpr std::int64_t kMemoryOfRank = 256 * kMiB;  // torch alone takes as much
constexpr std::int64_t kProcessesOfRank = 32;       // threads count: of OpenMP, autograd, NCCL, the store's client
constexpr std::int64_t kOpenFilesOfRank = 256;
constexpr std::int64_t kLockedBytes = 64 * kMiB;  // of a rank over RDMA, at least
constexpr std::size_t kMostNames = 6;             // of nodes in a line
constexpr auto kClockApart = std::chrono::seconds(2);

/// The first driver for a major release of CUDA, on Linux: docs.nvidia.com/cuda/cuda-toolkit-release-notes, table of
/// minor version compatibility.
struct DriverOfCuda {
  int cuda;
  int driver;
};
constexpr DriverOfCuda kDriverOfCuda[] = {{11, 450}, {12, 525}, {13, 580}};

/// "2.9" of "2.9.1+cu128".
std::string minor_of(const std::string& version) {
  const auto first = version.find('.');
  return first == version.npos ? version : version.substr(0, version.find('.', first + 1));
}

int leading_number(const std::string& text) { return std::atoi(text.c_str()); }

/// Findings by their words, so that what is the same on several nodes is said once.
class Findings {
 public:
  void add(Severity severity, const char* code, const std::string& node, std::string text, std::string fix) {
    auto& found = by_words_[{severity, order_of(code), text}];
    if (found.code.empty()) found = {severity, code, {}, std::move(text), std::move(fix)};
    if (!node.empty()) found.nodes.push_back(node);
  }

  std::vector<Finding> take() {
    std::vector<Finding> all;
    for (auto& [key, finding] : by_words_) all.push_back(std::move(finding));
    return all;
  }

 private:
  /// Rules come in the order in which they found something first.
  int order_of(const std::string& code) {
    return order_.try_emplace(code, static_cast<int>(order_.size())).first->second;
  }

  std::map<std::string, int> order_;
  std::map<std::tuple<Severity, int, std::string>, Finding> by_words_;
};

/// The rules for one node.
class NodeRules {
 public:
  NodeRules(const ExaminedNode& node, Findings& findings) : node_(node), facts_(node.facts), findings_(findings) {}

  void apply() {
    for (const auto& refusal : facts_.refusals) error("refused", refusal, "");
    look_at_program();
    look_at_network();
    if (node_.makes_data) return;
    look_at_gpus();
    look_at_limits();
    look_at_folders();
    look_at_memory();
  }

 private:
  void error(const char* code, std::string text, std::string fix) {
    findings_.add(Severity::kError, code, node_.name, std::move(text), std::move(fix));
  }
  void warn(const char* code, std::string text, std::string fix) {
    findings_.add(Severity::kWarning, code, node_.name, std::move(text), std::move(fix));
  }

  void look_at_program() {
    const auto& program = facts_.program;
    if (!program.problem.empty()) error("program", program.problem, "");
    if (!program.python_problem.empty()) {
      error("python", program.python_problem, "activate the environment that has it, or set PYTHON_EXEC");
    }
  }

  void look_at_gpus() {
    const auto& gpus = facts_.gpus;
    if (gpus.problem.empty() && gpus.device_files < gpus.on_bus) {
      error("gpu_devices",
            fmt::format("{} on the PCI bus, but {} in /dev", plural(gpus.on_bus, "NVIDIA GPU"),
                        plural(gpus.device_files, "device file")),
            "a driver that did not take a GPU says why in dmesg; in a container, all have to be passed on");
    }
    for (const auto& held : gpus.held) {
      warn("gpu_held", fmt::format("GPU {} is held by {}", held.gpu, held.holder), "end it, or choose other GPUs");
    }
    for (const auto& failing : gpus.failing) {
      findings_.add(failing.is_useless ? Severity::kError : Severity::kWarning, "gpu_fails", node_.name,
                    fmt::format("GPU {} {}", failing.gpu, failing.problem),
                    "leave it out (CUDA_VISIBLE_DEVICES), and reset it: nvidia-smi -q and dmesg tell more");
    }
    look_at_driver();
  }

  void look_at_driver() {
    const int cuda = leading_number(facts_.program.torch_cuda);
    const int driver = leading_number(facts_.gpus.driver);
    if (cuda == 0 || driver == 0) return;
    for (const auto& [release, least] : kDriverOfCuda) {
      if (release != cuda || driver >= least) continue;
      error("driver",
            fmt::format("driver {} is too old for torch's CUDA {}, which needs {}", facts_.gpus.driver,
                        facts_.program.torch_cuda, least),
            "update the driver, or install a torch for an older CUDA");
    }
  }

  void look_at_limits() {
    const auto& limits = facts_.limits;
    const auto ranks = std::max(facts_.ranks, 1);
    if (limits.open_files >= 0 && limits.open_files < kOpenFilesOfRank) {
      const bool enough = limits.open_files_hard < 0 || limits.open_files_hard >= kOpenFilesOfRank;
      warn("open_files",
           fmt::format("a rank may open {} files (ulimit -n), a DataLoader with workers needs some hundred",
                       limits.open_files),
           enough ? "ulimit -n 4096"
                  : fmt::format("the hard limit is {}: raise it in limits.conf or the service's unit",
                                limits.open_files_hard));
    }
    const auto wanted = kProcessesOfRank * ranks;
    if (!limits.privileged && limits.processes >= 0 && limits.processes < wanted) {
      error("processes",
            fmt::format("this user may have {} processes and threads (ulimit -Hu); {} need about {}", limits.processes,
                        plural(ranks, "rank"), wanted),
            "raise it in limits.conf or the service's unit");
    }
    if (limits.processes_left >= 0 && limits.processes_left < wanted) {
      error("processes",
            fmt::format("the control group has room for {} more processes and threads (pids.max); {} need about {}",
                        limits.processes_left, plural(ranks, "rank"), wanted),
            "start the container with a larger --pids-limit, or raise TasksMax of its unit");
    }
    if (limits.has_rdma && limits.locked_bytes >= 0 && limits.locked_bytes < kLockedBytes) {
      error("locked_memory",
            fmt::format("a process may lock {} of memory (ulimit -Hl), RDMA needs all that it sends from",
                        size_in_words(limits.locked_bytes)),
            "raise it in limits.conf or the service's unit; in a container, --ulimit memlock=-1");
    }
  }

  void look_at_folders() {
    const auto& shm = facts_.shared_memory;
    const char* more =
        "in a container, start it with a larger --shm-size (Docker) or an emptyDir of memory (Kubernetes)";
    if (!shm.problem.empty()) error("shared_memory", fmt::format("/dev/shm {}", shm.problem), more);
    const auto room = shm.total_bytes < 0 ? -1 : std::min(shm.total_bytes, shm.free_bytes);
    if (room >= 0 && room < kSmallestShm) {
      error("shared_memory",
            fmt::format("/dev/shm has {} left of {}: DataLoader workers and NCCL need it",
                        size_in_words(shm.free_bytes), size_in_words(shm.total_bytes)),
            more);
    } else if (shm.total_bytes >= 0 && shm.total_bytes <= kDockersShm) {
      warn("shared_memory",
           fmt::format("/dev/shm has {} in all: few DataLoader workers can share batches over it",
                       size_in_words(shm.total_bytes)),
           more);
    }
    look_at_output();
  }

  void look_at_output() {
    const auto& output = facts_.output;
    if (!output.problem.empty()) {
      return error("output", fmt::format("{} {}", output.path, output.problem), "--output chooses another folder");
    }
    if (output.free_bytes >= 0 && output.free_bytes < kSmallOutput) {
      const bool hopeless = output.free_bytes < kLeastOutput;
      findings_.add(hopeless ? Severity::kError : Severity::kWarning, "output", node_.name,
                    fmt::format("{} has {} left", output.path, size_in_words(output.free_bytes)),
                    "free some of it, or choose another folder by --output");
    }
    if (output.bytes_per_second >= 0 && output.bytes_per_second < kSlowOutput) {
      warn("output_speed",
           fmt::format("{} takes {}/s", output.path, size_in_words(static_cast<std::int64_t>(output.bytes_per_second))),
           "checkpoints will take long there; --output chooses another folder");
    }
  }

  /// NCCL's lists of interfaces: names begin so, "=" asks for the whole name, "^" for all others. Gloo's and
  /// TensorPipe's are whole names.
  void look_at_network() {
    const auto& network = facts_.network;
    for (const auto& [variable, value] : network.variables) {
      if (value.empty() || names_an_interface(variable, value)) continue;
      error("socket_interface",
            fmt::format("{}={} names no interface that is up; there {}: {}", variable, printable(value),
                        network.interfaces.size() == 1 ? "is" : "are", fmt::join(network.interfaces, ", ")),
            "unset it: taas-run sets Gloo's to the interface by which nodes reach each other");
    }
    if (!network.name_problem.empty()) {
      warn("own_name", fmt::format("its own name cannot be looked up: {}", network.name_problem),
           "add it to /etc/hosts or to DNS");
    }
    const auto is_own = [&](const std::string& address) {
      return address.starts_with("127.") || address == "::1" ||
             std::ranges::find(network.addresses, address) != network.addresses.end();
    };
    if (!network.name_means.empty() && std::ranges::none_of(network.name_means, is_own)) {
      error("own_name",
            fmt::format("its own name stands for {}, which is none of its addresses ({})",
                        fmt::join(network.name_means, ", "), fmt::join(network.addresses, ", ")),
            "correct it in /etc/hosts or in DNS");
    }
  }

  [[nodiscard]] bool names_an_interface(const std::string& variable, const std::string& value) const {
    const auto& all = facts_.network.interfaces;
    if (!variable.starts_with("NCCL_")) {
      return std::ranges::any_of(split(value, ','),
                                 [&](auto name) { return std::ranges::find(all, name) != all.end(); });
    }
    std::string_view list = value;
    const bool others = list.starts_with('^');
    if (others) list.remove_prefix(1);
    const bool whole = list.starts_with('=');
    if (whole) list.remove_prefix(1);
    const auto wanted = split(list, ',');
    return std::ranges::any_of(all, [&](std::string_view name) {
      const bool named = std::ranges::any_of(wanted, [&](std::string_view want) {
        const auto text = want.substr(0, want.find(':'));
        return whole ? name == text : name.starts_with(text);
      });
      return named != others;
    });
  }

  void look_at_memory() {
    const auto ranks = std::max(facts_.ranks, 1);
    if (facts_.memory_bytes < 0 || facts_.memory_bytes >= kMemoryOfRank * ranks) return;
    warn("memory",
         fmt::format("{} of memory are free for {}, of which each takes about {} with torch alone",
                     size_in_words(facts_.memory_bytes), plural(ranks, "rank"), size_in_words(kMemoryOfRank)),
         "start fewer ranks there, or give the container more");
  }

  const ExaminedNode& node_;
  const NodeFacts& facts_;
  Findings& findings_;
};

/// What most nodes have that have any, and the first of them where several values are as frequent. CPU machines count
/// for nothing.
template <class Value>
std::string most_frequent(const std::vector<ExaminedNode>& nodes, const Value& value) {
  std::map<std::string, int> counts;
  for (const auto& node : nodes) counts[value(node.facts)] += node.makes_data ? 0 : 1;
  counts.erase("");
  int most = 0;
  for (const auto& [text, count] : counts) most = std::max(most, count);
  for (const auto& node : nodes) {
    auto own = value(node.facts);
    if (!own.empty() && !node.makes_data && counts[own] == most) return own;
  }
  return {};
}

/// What has to be the same everywhere where it is known.
struct Sameness {
  Severity severity;
  const char* code;
  const char* what;
  std::string (*value)(const NodeFacts&);
  const char* fix;
  /// The same of a CPU machine, whose torch may be built without CUDA; null: it may be another one there.
  std::string (*of_data)(const NodeFacts&) = nullptr;
};

/// A Python that runs there without torch lacks it; one that does not run has been told of.
std::string torch_of(const NodeFacts& facts) {
  const auto& program = facts.program;
  return program.torch.empty() && !program.python.empty() ? "no torch" : program.torch;
}

std::string torch_without_build(const NodeFacts& facts) {
  const auto text = torch_of(facts);
  return text.substr(0, text.find('+'));
}
std::string python_of(const NodeFacts& facts) { return minor_of(facts.program.python); }

constexpr const char* kSameEnvironment = "give all nodes the same environment, best from shared storage or one image";
constexpr Sameness kSame[] = {
    {Severity::kError, "torch", "torch", torch_of, kSameEnvironment, torch_without_build},
    {Severity::kError, "python", "Python", python_of, kSameEnvironment, python_of},
    {Severity::kError, "nccl", "NCCL", [](const NodeFacts& facts) { return facts.program.nccl; }, kSameEnvironment},
    {Severity::kError, "machine", "a processor of kind", [](const NodeFacts& facts) { return facts.machine; },
     "ranks of one run need one kind of machine"},
    {Severity::kWarning, "driver", "driver", [](const NodeFacts& facts) { return facts.gpus.driver; },
     "install one driver on all nodes"},
    {Severity::kWarning, "libc", "libc", [](const NodeFacts& facts) { return facts.libc; }, kSameEnvironment},
};

void compare_nodes(const std::vector<ExaminedNode>& nodes, Findings& findings) {
  for (const auto& same : kSame) {
    const auto of_nodes = most_frequent(nodes, same.value);
    for (const auto& node : nodes) {
      if (node.makes_data && same.of_data == nullptr) continue;
      const auto asked = node.makes_data ? same.of_data : same.value;
      const auto value = asked(node.facts);
      const auto usual = node.makes_data ? most_frequent(nodes, asked) : of_nodes;
      if (value.empty() || usual.empty() || value == usual) continue;
      const auto named = [&](const std::string& text) {
        return text.starts_with("no ") ? text : fmt::format("{} {}", same.what, text);
      };
      findings.add(
          same.severity, same.code, node.name,
          fmt::format("has {}, {} {}", named(value), nodes.size() > 2 ? "the others" : "the other", named(usual)),
          same.fix);
    }
  }
}

/// A program that is there but is another one runs without a word.
void compare_programs(const std::vector<ExaminedNode>& nodes, Findings& findings) {
  const auto digest = [](const NodeFacts& facts) { return facts.program.digest; };
  const auto usual = most_frequent(nodes, digest);
  for (const auto& node : nodes) {
    const auto& own = node.facts.program.digest;
    if (own == usual || own.empty() || usual.empty()) continue;
    findings.add(Severity::kError, "program", node.name,
                 fmt::format("{} has other contents there than on most nodes", printable(node.facts.program.name)),
                 "copy it to all nodes, or keep it on shared storage");
  }
}

/// Beside the middle one: with two nodes nobody knows which of them is wrong.
void compare_clocks(const std::vector<ExaminedNode>& nodes, Findings& findings) {
  if (nodes.size() < 2) return;
  std::vector<Duration> clocks;
  for (const auto& node : nodes) clocks.push_back(node.clock);
  std::ranges::sort(clocks);
  const auto middle = clocks[(clocks.size() - 1) / 2];
  for (const auto& node : nodes) {
    const auto apart = node.clock - middle;
    if (apart < kClockApart && apart > -kClockApart) continue;
    findings.add(Severity::kWarning, "clock", node.name,
                 fmt::format("its clock is {:.0f} s {} the others'", std::abs(seconds(apart)),
                             apart > Duration{} ? "ahead of" : "behind"),
                 "times in logs do not fit together; let NTP set it");
  }
}

void look_at_ways(const std::vector<ExaminedNode>& nodes, Findings& findings) {
  for (const auto& node : nodes) {
    for (const auto& place : node.unreached) {
      findings.add(Severity::kError, "network", node.name, fmt::format("cannot reach {}", place),
                   "a firewall may be between them: ranks use any port; --interface chooses the network");
    }
  }
}

}  // namespace

std::vector<Finding> find_faults(const std::vector<ExaminedNode>& nodes) {
  Findings findings;
  for (const auto& node : nodes) NodeRules(node, findings).apply();
  compare_programs(nodes, findings);
  compare_nodes(nodes, findings);
  look_at_ways(nodes, findings);
  compare_clocks(nodes, findings);
  return findings.take();
}

std::string line_of(const Finding& finding, std::size_t nodes) {
  auto text = finding.text;
  const auto& where = finding.nodes;
  if (where.size() > 1 && where.size() == nodes) {
    text = fmt::format("all nodes: {}", text);
  } else if (where.size() > kMostNames) {
    const std::vector<std::string> first(where.begin(), where.begin() + kMostNames);
    text = fmt::format("{} and {} more: {}", fmt::join(first, ", "), where.size() - kMostNames, text);
  } else if (!where.empty()) {
    text = fmt::format("{}: {}", fmt::join(where, ", "), text);
  }
  return finding.fix.empty() ? text : fmt::format("{}; {}", text, finding.fix);
}

}  // namespace taas::run
