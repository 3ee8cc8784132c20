// Stands in for libnvidia-ml.so.1: FAKE_NVML is "gpu pid bytes" for each process that holds memory, with commas between
// them; FAKE_NVML=hang never answers, mismatch and unloaded are troubles with the driver. Each GPU has 80 GiB. There
// are eight, of one model, or of several with FAKE_NVML_MIXED. FAKE_NVML_LOST is a GPU that has fallen off the bus,
// FAKE_NVML_ECC one with two errors of its memory.
#include <unistd.h>

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

bool is_asked_for(const char* variable, const std::string& gpu) {
  const char* value = std::getenv(variable);
  return value != nullptr && value == gpu;
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
  return is_asked_for("FAKE_NVML_LOST", **device) ? kGpuIsLost : 0;
}
int nvmlDeviceGetTotalEccErrors(const std::string* device, int kind, int counter, unsigned long long* count) {
  constexpr int kUncorrected = 1, kSinceDriverWasLoaded = 0, kNotSupported = 3;
  if (kind != kUncorrected || counter != kSinceDriverWasLoaded) return kNotSupported;
  *count = is_asked_for("FAKE_NVML_ECC", *device) ? 2 : 0;
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, const std::string** device) {
  *device = handle_of(uuid);
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 8;
  return 0;
}

int nvmlDeviceGetName(const std::string* device, char* name, unsigned length) {
  const bool mixed = std::getenv("FAKE_NVML_MIXED") != nullptr;
  std::snprintf(name, length, "Fake%s%s", mixed ? " " : "", mixed ? device->c_str() : "");
  return 0;
}
int nvmlDeviceGetMemoryInfo(const std::string* device, Memory* memory) {
  *memory = {kTotal, kTotal, 0};
  for (const auto& process : processes_of(*device)) memory->used += process.used;
  memory->free -= memory->used;
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
