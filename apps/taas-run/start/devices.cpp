#include "start/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "proc/machine/gpu_memory.hpp"
#include "proc/machine/memory_watch.hpp"
#include "start/local_programs.hpp"
#include "system/command_output.hpp"

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

struct Row {
  std::string device;
  std::string name;
  std::string memory;
  std::string tensor;
};

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

Row cpu_row(const plan::Machine& machine) {
  auto free = available_memory();
  return {"cpu", fmt::format("{}, {} {}", cpu_name(), machine.cores, machine.cores == 1 ? "core" : "cores"),
          free ? fmt::format("{:.1f} GiB free", gib(static_cast<double>(*free))) : "unknown", ""};
}

std::vector<Row> gpu_rows(const plan::Machine& machine) {
  auto visible = find_variable(machine.environment, kVisible);
  std::vector<std::string> names;
  for (int index = 0; index < machine.gpus; ++index) {
    names.push_back(name_of_visible_gpu(index, visible).value_or(std::to_string(index)));
  }
  auto order = read_gpu_order(find_variable(machine.environment, "CUDA_DEVICE_ORDER"));
  auto described = describe_gpus(names, order, kDriverPatience);
  std::vector<Row> rows;
  for (std::size_t index = 0; index < names.size(); ++index) {
    Row row{fmt::format("cuda:{}", index), "GPU " + names[index], "unknown: the driver does not say", ""};
    if (index < described.size() && described[index]) {
      const auto& gpu = *described[index];
      row.name = printable(gpu.name);
      row.memory = fmt::format("{:.1f} of {:.1f} GiB free", gib(static_cast<double>(gpu.free_bytes)),
                               gib(static_cast<double>(gpu.total_bytes)));
      if (!gpu.trouble.empty()) row.memory += ", " + gpu.trouble;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Tried try_tensors(const plan::Machine& machine, const std::vector<Row>& rows) {
  Tried tried;
  auto python = LocalPrograms(machine.environment).find_python();
  if (!python) {
    tried.closing = "no tensor was tried: " + python.error().message;
    return tried;
  }
  std::vector<std::string> command{*python, "-c", kTry};
  for (const auto& row : rows) command.push_back(row.device);
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

std::string as_table(const std::vector<Row>& rows) {
  std::size_t device = 0, name = 0, memory = 0;
  for (const auto& row : rows) {
    device = std::max(device, row.device.size());
    name = std::max(name, row.name.size());
    memory = std::max(memory, row.memory.size());
  }
  std::string text;
  for (const auto& row : rows) {
    text +=
        fmt::format("{:<{}}  {:<{}}  {:<{}}  {}\n", row.device, device, row.name, name, row.memory, memory, row.tensor);
  }
  return text;
}

std::string note_on_gpus(const plan::Machine& machine) {
  if (machine.gpus > 0) return "";
  if (!machine.gpu_problem.empty()) return fmt::format("no GPU can be used here: {}\n", machine.gpu_problem);
  if (!machine.other_accelerators.empty()) {
    return fmt::format("no GPU is visible here that taas-run counts, but {}\n", machine.other_accelerators);
  }
  auto visible = find_variable(machine.environment, kVisible);
  if (!visible) return "no GPU is visible here\n";
  return fmt::format("no GPU is visible here, with {}='{}'\n", kVisible, printable(*visible));
}

}  // namespace

DevicesReport report_devices(const plan::Machine& machine) {
  std::vector<Row> rows{{"device", "what it is", "memory", "a tensor there"}, cpu_row(machine)};
  for (auto& row : gpu_rows(machine)) rows.push_back(std::move(row));
  std::vector<Row> devices(rows.begin() + 1, rows.end());
  auto tried = try_tensors(machine, devices);
  DevicesReport report;
  report.all_work = !tried.broke_off && machine.gpu_problem.empty();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    auto said = tried.by_device.find(rows[i].device);
    rows[i].tensor = said == tried.by_device.end() ? "not tried" : said->second;
    if (said != tried.by_device.end() && said->second != "works") report.all_work = false;
  }
  report.text = as_table(rows) + note_on_gpus(machine) + tried.closing + "\n";
  return report;
}

}  // namespace taas::cli
