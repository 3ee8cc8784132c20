// Stands in for libnvidia-ml.so.1: FAKE_NVML is "gpu pid bytes" for each process that holds memory, with commas between
// them; FAKE_NVML=hang never answers, mismatch and unloaded are troubles with the driver. Each GPU has 80 GiB.
// FAKE_NVML_HEALTH is "gpu what count" likewise: lost, errors, waits, failed. FAKE_NVML_MODELS are those of all GPUs,
// with commas between them; without it there is one.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

std::string asked() {
  const char* text = std::getenv("FAKE_NVML");
  return text == nullptr ? "" : text;
}

std::vector<std::string> models() {
  std::vector<std::string> found;
  const char* text = std::getenv("FAKE_NVML_MODELS");
  std::istringstream entries(text == nullptr ? "" : text);
  for (std::string entry; std::getline(entries, entry, ',');) found.push_back(entry);
  return found;
}

std::vector<Process> processes_of(const std::string& gpu) {
  std::vector<Process> found;
  std::istringstream entries(asked());
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::istringstream fields(entry);
    std::string name;
    Process process{0, 0, 0, 0};
    fields >> name >> process.pid >> process.used;
    if (name == gpu) found.push_back(process);
  }
  return found;
}

unsigned counted(const std::string& gpu, const std::string& what) {
  const char* text = std::getenv("FAKE_NVML_HEALTH");
  std::istringstream entries(text == nullptr ? "" : text);
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::istringstream fields(entry);
    std::string name, kind;
    unsigned count = 0;
    fields >> name >> kind >> count;
    if (name == gpu && kind == what) return count;
  }
  return 0;
}

/// As long as the library is there.
const std::string* handle_of(std::string gpu) {
  static std::set<std::string> handles;
  return &*handles.insert(std::move(gpu)).first;
}

/// nvmlMemory_t.
struct Memory {
  unsigned long long total, free, used;
};

constexpr unsigned long long kTotal = 80ULL << 30;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  constexpr int kDriverNotLoaded = 9, kVersionMismatch = 18;
  while (asked() == "hang") ::pause();
  if (asked() == "unloaded") return kDriverNotLoaded;
  return asked() == "mismatch" ? kVersionMismatch : 0;
}
int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, const std::string** device) {
  constexpr int kGpuIsLost = 15;
  *device = handle_of(std::to_string(index));
  return counted(**device, "lost") != 0 ? kGpuIsLost : 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, const std::string** device) {
  *device = handle_of(uuid);
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = std::max(1U, static_cast<unsigned>(models().size()));
  return 0;
}

int nvmlDeviceGetName(const std::string* device, char* name, unsigned length) {
  auto place = static_cast<std::size_t>(std::atoi(device->c_str()));
  auto model = place < models().size() ? models()[place] : "Fake " + *device;
  std::snprintf(name, length, "%s", model.c_str());
  return 0;
}
int nvmlDeviceGetMemoryInfo(const std::string* device, Memory* memory) {
  *memory = {kTotal, kTotal, 0};
  for (const auto& process : processes_of(*device)) memory->used += process.used;
  memory->free -= memory->used;
  return 0;
}

/// nvmlUtilization_t: GPU n is busy for n + 90 percent.
int nvmlDeviceGetUtilizationRates(const std::string* device, unsigned* utilization) {
  utilization[0] = 90U + static_cast<unsigned>(std::atoi(device->c_str()));
  utilization[1] = 0;
  return 0;
}

int nvmlDeviceGetTotalEccErrors(const std::string* device, int type, int counter, unsigned long long* count) {
  constexpr int kNotSupported = 3, kUncorrected = 1, kVolatile = 0;
  *count = counted(*device, "errors");
  return type == kUncorrected && counter == kVolatile ? 0 : kNotSupported;
}
int nvmlDeviceGetRemappedRows(const std::string* device, unsigned* corrected, unsigned* uncorrected, unsigned* waits,
                              unsigned* failed) {
  *corrected = *uncorrected = 0;
  *waits = counted(*device, "waits");
  *failed = counted(*device, "failed");
  return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(const std::string* device, unsigned* count, Process* processes) {
  constexpr int kInsufficientSize = 7;
  const auto found = processes_of(*device);
  const bool fits = found.size() <= *count;
  *count = static_cast<unsigned>(found.size());
  if (!fits) return kInsufficientSize;
  for (std::size_t i = 0; i < found.size(); ++i) processes[i] = found[i];
  return 0;
}
}
