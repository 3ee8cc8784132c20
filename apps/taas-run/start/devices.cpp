#include "start/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "proc/machine/gpu_driver.hpp"
#include "proc/machine/memory_watch.hpp"
#include "proc/spawn/command_output.hpp"
#include "start/local_programs.hpp"

namespace taas::cli {
namespace {

constexpr auto kDriverPatience = std::chrono::seconds(5);
constexpr auto kTorchPatience = std::chrono::seconds(120);  // its first import reads hundreds of megabytes
constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

/// Prints "torch<tab>version", and "device<tab>what became of a tensor there" for each of its arguments.
constexpr const char* kTry = R"(
import sys
try:
    import torch
except ImportError as error:
    print(f"missing\t{error}")
    sys.exit()
print(f"torch\t{torch.__version__}")
for name in sys.argv[1:]:
    try:
        value = (torch.zeros(1, device=name) + 1).item()
        said = "works" if value == 1 else f"0 + 1 is {value} there"
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
    print(f"{name}\t{said}", flush=True)
)";

struct Tried {
  std::map<std::string, std::string> by_device;
  std::string closing;  ///< which torch it was, or why none was
  bool broke_off = false;
};

double gib(double bytes) { return bytes / static_cast<double>(1 << 30); }

/// The first "model name" of /proc/cpuinfo, which not every architecture has.
std::string cpu_name() {
  auto text = read_file("/proc/cpuinfo");
  if (!text) return "CPU";
  for (auto line : split(*text, '\n')) {
    auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return std::string(line.substr(colon + 2));
  }
  return "CPU";
}

Device cpu_device(const plan::Machine& machine) {
  Device cpu{"cpu", fmt::format("{}, {}", cpu_name(), plural(machine.cores, "core")), -1, -1, ""};
  if (auto free = available_memory()) cpu.free_bytes = static_cast<std::int64_t>(*free);
  return cpu;
}

std::vector<Device> gpu_devices(const plan::Machine& machine) {
  const auto names = names_of_visible_gpus(machine.gpus, find_variable(machine.environment, kVisible));
  auto described = describe_gpus(names, kDriverPatience);
  std::vector<Device> devices;
  for (std::size_t index = 0; index < names.size(); ++index) {
    Device device{fmt::format("cuda:{}", index), "GPU " + names[index], -1, -1, ""};
    if (index < described.size() && described[index]) {
      const auto& gpu = *described[index];
      device.name = printable(gpu.name);
      device.free_bytes = static_cast<std::int64_t>(gpu.free_bytes);
      device.total_bytes = static_cast<std::int64_t>(gpu.total_bytes);
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::string memory_text(const Device& device) {
  const auto free = gib(static_cast<double>(device.free_bytes));
  if (device.free_bytes < 0) return device.device == "cpu" ? "unknown" : "unknown: the driver does not say";
  if (device.total_bytes < 0) return fmt::format("{:.1f} GiB free", free);
  return fmt::format("{:.1f} of {:.1f} GiB free", free, gib(static_cast<double>(device.total_bytes)));
}

Tried try_tensors(const plan::Machine& machine, const std::vector<Device>& devices) {
  Tried tried;
  auto python = LocalPrograms(machine.environment).find_python();
  if (!python) {
    tried.closing = "no tensor was tried: " + python.error().message;
    return tried;
  }
  std::vector<std::string> command{*python, "-c", kTry};
  for (const auto& device : devices) command.push_back(device.device);
  auto printed = output_of(command, kTorchPatience, Complaints::kDropped);
  if (!printed) {
    tried.closing = fmt::format("trying tensors broke off: {}", printed.error().message);
    tried.broke_off = true;
    return tried;
  }
  for (auto line : split(*printed, '\n')) {
    auto tab = line.find('\t');
    if (tab == line.npos) continue;
    auto key = std::string(line.substr(0, tab));
    auto said = printable(line.substr(tab + 1));
    if (key == "torch") {
      tried.closing = fmt::format("tried with torch {} of {}", said, *python);
    } else if (key == "missing") {
      tried.closing = fmt::format("no tensor was tried: {} has no torch ({})", *python, said);
    } else {
      tried.by_device[key] = said;
    }
  }
  return tried;
}

std::string note_on_gpus(const plan::Machine& machine) {
  if (machine.gpus > 0) return "";
  if (!machine.gpu_problem.empty()) return fmt::format("no GPU can be used here: {}", machine.gpu_problem);
  if (!machine.other_accelerators.empty()) {
    return fmt::format("no GPU is visible here that taas-run counts, but {}", machine.other_accelerators);
  }
  auto visible = find_variable(machine.environment, kVisible);
  if (!visible) return "no GPU is visible here";
  return fmt::format("no GPU is visible here, with {}='{}'", kVisible, printable(*visible));
}

}  // namespace

DevicesDocument find_devices(const plan::Machine& machine) {
  DevicesDocument found;
  found.devices = gpu_devices(machine);
  found.devices.insert(found.devices.begin(), cpu_device(machine));
  const auto tried = try_tensors(machine, found.devices);
  found.ok = !tried.broke_off && machine.gpu_problem.empty();
  for (auto& device : found.devices) {
    const auto said = tried.by_device.find(device.device);
    device.tensor = said == tried.by_device.end() ? "not tried" : said->second;
    if (said != tried.by_device.end() && said->second != "works") found.ok = false;
  }
  found.no_gpu = note_on_gpus(machine);
  found.torch = tried.closing;
  return found;
}

std::string as_text(const DevicesDocument& found) {
  std::vector<std::array<std::string, 4>> rows{{"device", "what it is", "memory", "a tensor there"}};
  for (const auto& device : found.devices) {
    rows.push_back({device.device, device.name, memory_text(device), device.tensor});
  }
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += row.back() + "\n";
  }
  if (!found.no_gpu.empty()) text += found.no_gpu + "\n";
  return text + found.torch + "\n";
}

}  // namespace taas::cli
