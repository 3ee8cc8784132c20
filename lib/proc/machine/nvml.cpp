#include "proc/machine/nvml.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cctype>
#include <charconv>
#include <set>

namespace taas {
namespace {

using Device = struct nvmlDevice_st*;
constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0, kInsufficientSize = 7, kDriverNotLoaded = 9, kGpuIsLost = 15, kVersionMismatch = 18;
constexpr int kUncorrected = 1, kSinceLoaded = 0;  // nvmlMemoryErrorType_t, nvmlEccCounterType_t
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr std::size_t kLongestName = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
constexpr unsigned kRoom = 16;            // processes; more are asked for when there are more

/// nvmlProcessInfo_t of the second version on.
struct ProcessInfo {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

/// nvmlMemory_t.
struct MemoryInfo {
  unsigned long long total, free, used;
};

/// nvmlUtilization_t: percents of the time.
struct Utilization {
  unsigned gpu, memory;
};

using Simple = int (*)();
using Count = int (*)(unsigned* count);
using ByIndex = int (*)(unsigned index, Device* device);
using ByUuid = int (*)(const char* uuid, Device* device);
using Name = int (*)(Device device, char* name, unsigned length);
using Memory = int (*)(Device device, MemoryInfo* memory);
using Busy = int (*)(Device device, Utilization* utilization);
using Errors = int (*)(Device device, int type, int counter, unsigned long long* count);
using Remapped = int (*)(Device device, unsigned* corrected, unsigned* uncorrected, unsigned* waits, unsigned* failed);
using Processes = int (*)(Device device, unsigned* count, ProcessInfo* processes);

template <class Function>
Function find(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

/// What the driver answers, or that there is nobody to ask.
int look_up(void* library, const std::string& gpu, Device& device) {
  constexpr int kFunctionNotFound = 13;
  if (Nvml::is_number(gpu)) {
    unsigned index = 0;
    std::from_chars(gpu.data(), gpu.data() + gpu.size(), index);
    auto by_index = find<ByIndex>(library, "nvmlDeviceGetHandleByIndex_v2");
    return by_index == nullptr ? kFunctionNotFound : by_index(index, &device);
  }
  auto by_uuid = find<ByUuid>(library, "nvmlDeviceGetHandleByUUID");
  return by_uuid == nullptr ? kFunctionNotFound : by_uuid(gpu.c_str(), &device);
}

bool find_device(void* library, const std::string& gpu, Device& device) {
  return look_up(library, gpu, device) == kSuccess;
}

std::vector<ProcessInfo> running(void* library, Device device) {
  auto ask = find<Processes>(library, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (ask == nullptr) ask = find<Processes>(library, "nvmlDeviceGetComputeRunningProcesses_v2");
  if (ask == nullptr) return {};
  std::vector<ProcessInfo> processes(kRoom);
  auto count = static_cast<unsigned>(processes.size());
  int result = ask(device, &count, processes.data());
  if (result == kInsufficientSize) {
    processes.resize(count + kRoom);
    count = static_cast<unsigned>(processes.size());
    result = ask(device, &count, processes.data());
  }
  processes.resize(result == kSuccess ? count : 0);
  return processes;
}

}  // namespace

Nvml::Nvml() : library_(::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)) {
  auto start = find<Simple>(library_, "nvmlInit_v2");
  if (start == nullptr) return;
  answer_ = start();
  initialised_ = answer_ == kSuccess;
}

Nvml::~Nvml() {
  auto stop = find<Simple>(library_, "nvmlShutdown");
  if (initialised_ && stop != nullptr) stop();
}

std::optional<std::string> Nvml::file() {
  void* library = ::dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  link_map* loaded = nullptr;
  return ::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&loaded)) == 0 ? loaded->l_name : "";
}

bool Nvml::is_number(const std::string& gpu) {
  return !gpu.empty() && std::isdigit(static_cast<unsigned char>(gpu[0])) != 0;
}

bool Nvml::are_alike() const {
  auto ask = find<Count>(library_, "nvmlDeviceGetCount_v2");
  unsigned count = 0;
  if (!initialised_ || ask == nullptr || ask(&count) != kSuccess) return false;
  std::set<std::string> models;
  for (unsigned index = 0; index < count; ++index) {
    auto gpu = describe(std::to_string(index));
    models.insert(gpu ? gpu->name : std::string());  // one that does not answer may be of any model
  }
  return models.size() <= 1;
}

DriverState Nvml::state() const {
  if (answer_ == kDriverNotLoaded) return DriverState::kNotLoaded;
  return answer_ == kVersionMismatch ? DriverState::kOtherVersion : DriverState::kUnknown;
}

std::vector<GpuMemoryHolder> Nvml::holders(const std::string& gpu) const {
  Device device = nullptr;
  std::vector<GpuMemoryHolder> found;
  if (!initialised_ || !find_device(library_, gpu, device)) return found;
  for (const auto& process : running(library_, device)) {
    auto bytes = process.used == kNotAvailable ? std::nullopt : std::optional<std::uint64_t>(process.used);
    found.push_back({static_cast<int>(process.pid), {}, bytes});
  }
  return found;
}

std::optional<GpuDescription> Nvml::describe(const std::string& gpu) const {
  Device device = nullptr;
  if (!initialised_ || !find_device(library_, gpu, device)) return std::nullopt;
  auto ask_name = find<Name>(library_, "nvmlDeviceGetName");
  auto ask_memory = find<Memory>(library_, "nvmlDeviceGetMemoryInfo");
  std::array<char, kLongestName> name{};
  MemoryInfo memory{};
  if (ask_name == nullptr || ask_name(device, name.data(), name.size()) != kSuccess) return std::nullopt;
  if (ask_memory == nullptr || ask_memory(device, &memory) != kSuccess) return std::nullopt;
  return GpuDescription{name.data(), memory.total, memory.free};
}

std::optional<GpuUse> Nvml::use(const std::string& gpu) const {
  Device device = nullptr;
  if (!initialised_ || !find_device(library_, gpu, device)) return std::nullopt;
  auto ask_busy = find<Busy>(library_, "nvmlDeviceGetUtilizationRates");
  auto ask_memory = find<Memory>(library_, "nvmlDeviceGetMemoryInfo");
  Utilization busy{};
  MemoryInfo memory{};
  if (ask_busy == nullptr || ask_busy(device, &busy) != kSuccess) return std::nullopt;
  if (ask_memory == nullptr || ask_memory(device, &memory) != kSuccess) return std::nullopt;
  return GpuUse{static_cast<int>(busy.gpu), memory.used};
}

std::optional<GpuHealth> Nvml::health(const std::string& gpu) const {
  if (!initialised_) return std::nullopt;
  Device device = nullptr;
  const int answer = look_up(library_, gpu, device);
  if (answer == kGpuIsLost) return GpuHealth{.is_lost = true};
  if (answer != kSuccess) return std::nullopt;
  GpuHealth health;
  auto ask_errors = find<Errors>(library_, "nvmlDeviceGetTotalEccErrors");
  auto ask_remapped = find<Remapped>(library_, "nvmlDeviceGetRemappedRows");
  unsigned long long errors = 0;
  if (ask_errors != nullptr) {
    const int said = ask_errors(device, kUncorrected, kSinceLoaded, &errors);
    health.is_lost = said == kGpuIsLost;
    if (said == kSuccess) health.uncorrectable_errors = errors;
  }
  unsigned corrected = 0, uncorrected = 0, waits = 0, failed = 0;
  if (ask_remapped != nullptr && ask_remapped(device, &corrected, &uncorrected, &waits, &failed) == kSuccess) {
    health.remapping_waits = waits != 0;
    health.remapping_failed = failed != 0;
  }
  return health;
}

}  // namespace taas
