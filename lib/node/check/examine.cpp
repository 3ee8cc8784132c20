#include "node/check/examine.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/environment/environment.hpp"
#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "net/addresses.hpp"
#include "node/code/digest.hpp"
#include "plan/environment/rank_environment.hpp"
#include "proc/family/cgroup.hpp"
#include "proc/machine/gpu_driver.hpp"
#include "proc/machine/gpus.hpp"
#include "proc/machine/machine.hpp"
#include "proc/machine/memory_watch.hpp"
#include "proc/spawn/command_output.hpp"
#include "proc/spawn/open_files.hpp"
#include "proc/spawn/python.hpp"

namespace taas::node {
namespace {

namespace fs = std::filesystem;

constexpr auto kPythonPatience = std::chrono::seconds(12);  // an environment on shared storage that nobody has read yet
constexpr auto kChildPatience = std::chrono::seconds(20);
constexpr auto kNamePatience = std::chrono::seconds(3);
constexpr auto kDriverPatience = std::chrono::seconds(2);
constexpr std::size_t kTrialBytes = 4 << 20;
constexpr std::size_t kLargestProgram = 64 << 20;
constexpr std::uint64_t kHeldBytes = std::uint64_t{512} << 20;  // less is a context that computes nothing
constexpr const char* kSharedMemory = "/dev/shm";

/// Prints lines "name<tab>value". Nothing of torch's is imported, which takes seconds and touches GPUs.
constexpr const char* kAskPython = R"(
import sys
sys.path[:] = [place for place in sys.path if place]
import ast, importlib.util, os
from importlib import metadata
say = lambda name, value: print(f"{name}\t{value}")
say("python", ".".join(map(str, sys.version_info[:3])))
spec = importlib.util.find_spec("torch")
versions = os.path.join(os.path.dirname(spec.origin), "version.py") if spec and spec.origin else ""
if not os.path.exists(versions):  # a torch.py of the user's has none
    sys.exit()
facts = {}
with open(versions, encoding="utf-8") as file:
    for line in ast.parse(file.read()).body:
        names = getattr(line, "targets", None) or [getattr(line, "target", None)]
        if isinstance(names[0], ast.Name) and isinstance(line.value, ast.Constant):
            facts[names[0].id] = line.value.value
say("torch", facts.get("__version__") or "")
say("cuda", facts.get("cuda") or "")
for cuda in range(11, 20):
    try:
        say("nccl", metadata.version(f"nvidia-nccl-cu{cuda}"))
        break
    except metadata.PackageNotFoundError:
        pass
)";

void ask_python(const std::string& interpreter, run::ProgramFacts& facts) {
  auto end = run_command({interpreter, "-c", kAskPython}, kPythonPatience, Complaints::kDropped);
  if (!end || end->exit_code != 0) {
    facts.python_problem = end ? fmt::format("{} cannot run: it ended with exit code {}", interpreter, end->exit_code)
                               : fmt::format("{} cannot run: {}", interpreter, end.error().message);
    return;
  }
  for (auto line : split(end->output, '\n')) {
    const auto tab = line.find('\t');
    if (tab == line.npos) continue;
    const auto value = printable(line.substr(tab + 1));
    const auto name = line.substr(0, tab);
    if (name == "python") facts.python = value;
    if (name == "torch") facts.torch = value;
    if (name == "cuda") facts.torch_cuda = value;
    if (name == "nccl") facts.nccl = value;
  }
  if (facts.torch_cuda.empty()) facts.nccl.clear();
}

/// What "#!" at the beginning of an executable file names, if it is not there; empty: all is there, or it is no script.
std::string missing_interpreter(const std::string& text, const std::string& path) {
  if (!text.starts_with("#!")) return {};
  const auto line = trim(std::string_view(text).substr(2, text.find('\n') - 2));
  const auto words = split(line, ' ');
  std::string program(words.front());
  if (::access(program.c_str(), X_OK) != 0) return program;
  const bool by_name = program.ends_with("/env") && words.size() == 2;
  return by_name && find_in_path(std::string(words.back()), path).empty() ? std::string(words.back()) : "";
}

run::ProgramFacts program_facts(const ExamineWish& wish, const Environment& environment) {
  run::ProgramFacts facts;
  facts.problem = wish.program_problem;
  facts.name = wish.program;
  facts.interpreter = wish.interpreter;
  if (facts.problem.empty() && !wish.program.empty()) {
    auto text = read_regular_file(wish.program, kLargestProgram);
    if (text && !text->empty()) facts.digest = in_hex(sha256(*text));
    auto missing = text && wish.interpreter.empty() ? missing_interpreter(*text, value_of(environment, "PATH")) : "";
    if (!missing.empty()) facts.problem = fmt::format("{}: its interpreter {} is not there", wish.program, missing);
  }
  if (!wish.interpreter.empty()) ask_python(wish.interpreter, facts);
  return facts;
}

void find_holders(const std::vector<std::string>& gpus, bool by_bus, run::GpuFacts& facts) {
  for (const auto& gpu : gpus) {
    for (const auto& holder : gpu_memory_holders(gpu, by_bus, kDriverPatience)) {
      if (holder.bytes && *holder.bytes < kHeldBytes) continue;
      const auto name = holder.name.empty() ? std::string() : fmt::format(" ({})", printable(holder.name));
      const auto amount = holder.bytes ? ", " + size_in_words(*holder.bytes) : std::string();
      facts.held.push_back({gpu, fmt::format("pid {}{}{}", holder.pid, name, amount)});
    }
  }
}

void find_failing(const std::vector<std::string>& gpus, bool by_bus, run::GpuFacts& facts) {
  const auto healths = health_of_gpus(gpus, by_bus, kDriverPatience);
  for (std::size_t i = 0; i < healths.size(); ++i) {
    if (!healths[i]) continue;
    const auto& health = *healths[i];
    auto add = [&](std::string problem, bool is_useless) {
      facts.failing.push_back({gpus[i], std::move(problem), is_useless});
    };
    if (health.is_lost) add("has fallen off the bus", true);
    if (health.remapping_failed) add("has more failed memory than it can take out of use", true);
    if (health.remapping_waits) add("has failed memory, which the next reset takes out of use", false);
    if (health.uncorrectable_errors > 0) {
      add(fmt::format("has had {} of its memory that could not be corrected since the driver was loaded",
                      plural(static_cast<std::int64_t>(health.uncorrectable_errors), "error")),
          false);
    }
  }
}

run::GpuFacts gpu_facts(const ExamineWish& wish, const Environment& environment) {
  run::GpuFacts facts;
  facts.visible = wish.gpus;
  facts.problem = wish.gpu_problem;
  auto traces = find_gpu_traces();
  facts.on_bus = traces.on_bus;
  facts.device_files = traces.device_files;
  facts.driver = std::move(traces.driver);
  const auto gpus = names_of_visible_gpus(facts.visible, find_variable(environment, "CUDA_VISIBLE_DEVICES"));
  const bool by_bus = value_of(environment, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID";
  find_holders(gpus, by_bus, facts);
  find_failing(gpus, by_bus, facts);
  return facts;
}

std::int64_t amount(rlim_t limit) { return limit == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(limit); }

std::optional<std::int64_t> read_number(const std::string& path) {
  const auto text = read_file(path);
  std::int64_t number = 0;
  if (!text) return std::nullopt;
  const auto [rest, wrong] = std::from_chars(text->data(), text->data() + text->size(), number);
  return wrong == std::errc() ? std::optional(number) : std::nullopt;  // "max": no limit
}

/// Over all groups that this process is in.
std::int64_t processes_left() {
  const auto group = find_cgroup("pids");
  if (!group) return -1;
  std::int64_t left = -1;
  for (auto directory = group->directory; directory.size() >= group->mount.size();) {
    const auto most = read_number(directory + "/pids.max");
    const auto now = read_number(directory + "/pids.current");
    if (most && now) left = left < 0 ? *most - *now : std::min(left, *most - *now);
    directory.resize(directory.rfind('/'));
  }
  return left;
}

run::LimitFacts limit_facts(const ExamineWish& wish) {
  run::LimitFacts facts;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    facts.open_files = wish.open_files >= 0 ? wish.open_files : amount(limit.rlim_cur);
    facts.open_files_hard = amount(limit.rlim_max);
  }
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0) facts.locked_bytes = amount(limit.rlim_max);
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0) facts.processes = amount(limit.rlim_max);
  facts.processes_left = processes_left();
  facts.privileged = ::geteuid() == 0;
  std::error_code none;
  facts.has_rdma = fs::exists("/sys/class/infiniband", none) && !fs::is_empty("/sys/class/infiniband", none);
  return facts;
}

void measure_room(const std::string& place, run::FolderFacts& facts) {
  struct statvfs room {};
  if (::statvfs(place.c_str(), &room) != 0) return;
  const auto unit = static_cast<std::int64_t>(room.f_frsize);
  facts.total_bytes = static_cast<std::int64_t>(room.f_blocks) * unit;
  facts.free_bytes = static_cast<std::int64_t>(room.f_bavail) * unit;
}

run::FolderFacts shared_memory_facts() {
  run::FolderFacts facts;
  facts.path = kSharedMemory;
  if (::access(kSharedMemory, W_OK | X_OK) != 0) {
    facts.problem = fmt::format("cannot be written to: {}", std::strerror(errno));
    return facts;
  }
  measure_room(kSharedMemory, facts);
  return facts;
}

/// Where it, or the nearest folder above it that is there, can be written to.
std::string nearest_folder(const std::string& wanted) {
  std::error_code none;
  fs::path place = fs::path(wanted).lexically_normal();
  while (place.has_relative_path() && !fs::exists(place, none)) place = place.parent_path();
  return place;
}

/// A file without a name, of which nothing is left whatever ends this process.
void try_to_write(const std::string& place, run::FolderFacts& facts) {
  const Fd file(::open(place.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) {
    if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL) return;  // not on this file system
    facts.problem = fmt::format("cannot be written to: {}", std::strerror(errno));
    return;
  }
  const auto begun = steady_now();
  auto written = write_all(file, std::string(kTrialBytes, 'x'));
  if (!written) {
    facts.problem = fmt::format("cannot be written to: {}", written.error().message);
    return;
  }
  if (::fdatasync(file.get()) != 0) return;
  facts.bytes_per_second = static_cast<double>(kTrialBytes) / std::max(seconds(steady_now() - begun), 1e-6);
}

run::FolderFacts output_facts(const std::string& wanted) {
  run::FolderFacts facts;
  facts.path = wanted;
  const auto place = nearest_folder(wanted);
  std::error_code none;
  if (!fs::is_directory(place, none)) {
    facts.problem = fmt::format("cannot be a folder: {} is a file", place);
    return facts;
  }
  if (::access(place.c_str(), W_OK | X_OK) != 0) {
    facts.problem = fmt::format("cannot be written to: {}", std::strerror(errno));
    return facts;
  }
  measure_room(place, facts);
  try_to_write(place, facts);
  return facts;
}

std::vector<std::string> interfaces_that_are_up() {
  std::vector<std::string> names;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return names;
  for (const auto* one = all; one != nullptr; one = one->ifa_next) {
    const std::string name = one->ifa_name;
    const bool is_new = std::ranges::find(names, name) == names.end();
    if ((one->ifa_flags & IFF_UP) != 0 && is_new) names.push_back(name);
  }
  ::freeifaddrs(all);
  return names;
}

struct NameLookup {
  std::vector<std::string> addresses;
  std::string problem;
};

NameLookup look_up(const std::string& name) {
  NameLookup found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  if (const int failed = ::getaddrinfo(name.c_str(), nullptr, &hints, &all); failed != 0) {
    found.problem = fmt::format("{}: {}", name, ::gai_strerror(failed));
    return found;
  }
  for (const auto* one = all; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    found.addresses.emplace_back(text);
  }
  ::freeaddrinfo(all);
  return found;
}

/// A name server that does not answer holds up whoever asks for half a minute: it is left to a thread that nobody waits
/// for.
NameLookup look_up_in_time(const std::string& name) {
  auto answer = std::make_shared<std::promise<NameLookup>>();
  auto future = answer->get_future();
  std::thread([answer, name] { answer->set_value(look_up(name)); }).detach();
  if (future.wait_for(kNamePatience) == std::future_status::ready) return future.get();
  return {{}, fmt::format("{}: no answer within {} s", name, kNamePatience.count())};
}

run::NetworkFacts network_facts(const Environment& environment) {
  run::NetworkFacts facts;
  facts.interfaces = interfaces_that_are_up();
  if (auto own = net::candidate_addresses()) facts.addresses = std::move(*own);
  for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_OOB_NET_IFNAME", "TP_SOCKET_IFNAME"}) {
    if (auto value = value_of(environment, name); !value.empty()) facts.variables[name] = value;
  }
  auto found = look_up_in_time(hostname());
  facts.name_means = std::move(found.addresses);
  facts.name_problem = std::move(found.problem);
  return facts;
}

}  // namespace

ExamineWish examine_wish(const plan::LaunchSettings& settings, const plan::Machine& machine,
                         const Result<plan::ResolvedProgram>& program, int ranks) {
  const auto& options = settings.options;
  ExamineWish wish;
  wish.program = options.program.module ? "" : options.program.program;
  if (!program) wish.program_problem = program.error().message;
  if (program && program->python) wish.interpreter = program->command.front();
  for (const auto& variable : options.frameworks.env) {
    const auto equals = variable.find('=');
    if (equals != variable.npos) wish.environment[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  wish.output = (fs::path(settings.working_directory) / options.output.directory).lexically_normal();
  if (auto enough = plan::check_share(settings, machine, ranks); !enough) {
    wish.refusals.push_back(enough.error().message);
  }
  if (auto room = check_open_files_limit(ranks); !room) wish.refusals.push_back(room.error().message);
  wish.ranks = ranks;
  wish.gpus = machine.gpus;
  wish.gpu_problem = settings.device == plan::Device::kGpu ? machine.gpu_problem : "";
  return wish;
}

run::NodeFacts examine(const ExamineWish& wish, Environment environment) {
  for (const auto& [name, value] : wish.environment) environment[name] = value;
  run::NodeFacts facts;
  utsname machine{};
  ::uname(&machine);
  facts.machine = machine.machine;
  facts.kernel = machine.release;
  facts.libc = ::gnu_get_libc_version();
  facts.program = program_facts(wish, environment);
  facts.gpus = gpu_facts(wish, environment);
  facts.limits = limit_facts(wish);
  facts.shared_memory = shared_memory_facts();
  facts.output = output_facts(wish.output);
  facts.network = network_facts(environment);
  facts.memory_bytes = available_memory().value_or(-1);
  facts.ranks = wish.ranks;
  facts.refusals = wish.refusals;
  return facts;
}

run::NodeFacts examine_by_child(const ExamineWish& wish) {
  const auto input = file_in_memory("taas-examine", boost::json::serialize(to_json(wish)) + "\n");
  if (!input) return no_facts(input.error().message);
  const auto end = run_command({"/proc/self/exe", kExamineFlag}, kChildPatience, Complaints::kDropped, &*input);
  return end ? facts_of(end->output) : no_facts(end.error().message);
}

run::NodeFacts facts_of(const std::string& said) {
  const auto value = parse_json(said);
  auto facts = value ? from_json<run::NodeFacts>(*value) : Result<run::NodeFacts>(value.error());
  return facts ? std::move(*facts) : no_facts("the look was broken off");
}

run::NodeFacts no_facts(const std::string& reason) {
  run::NodeFacts facts;
  facts.refusals.push_back(fmt::format("it cannot be looked at: {}", reason));
  return facts;
}

}  // namespace taas::node
