#include "proc/machine/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace taas {
namespace {

using Device = struct nvmlDevice_st*;
constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kSuccess = 0, kInsufficientSize = 7, kDriverNotLoaded = 9, kGpuIsLost = 15, kVersionMismatch = 18;
constexpr int kNoFunction = -1, kNotCertain = -2;  // no answers of NVML
constexpr int kUncorrected = 1, kSinceDriverWasLoaded = 0;
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

using Simple = int (*)();
using Count = int (*)(unsigned* count);
using ByIndex = int (*)(unsigned index, Device* device);
using ByUuid = int (*)(const char* uuid, Device* device);
using Name = int (*)(Device device, char* name, unsigned length);
using Memory = int (*)(Device device, MemoryInfo* memory);
using EccErrors = int (*)(Device device, int kind, int counter, unsigned long long* count);
using Processes = int (*)(Device device, unsigned* count, ProcessInfo* processes);

template <class Function>
Function find(void* library, const char* name) {
  return library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
}

int by_number(void* library, unsigned index, Device& device) {
  auto ask = find<ByIndex>(library, "nvmlDeviceGetHandleByIndex_v2");
  return ask == nullptr ? kNoFunction : ask(index, &device);
}

std::string name_of(void* library, Device device) {
  auto ask = find<Name>(library, "nvmlDeviceGetName");
  std::array<char, kLongestName> name{};
  return ask != nullptr && ask(device, name.data(), name.size()) == kSuccess ? name.data() : "";
}

/// Of one model, and so equally fast. Then CUDA is taken to have the order of the bus, which NVML always has. One that
/// is lost has no name any more.
bool all_are_alike(void* library) {
  auto ask = find<Count>(library, "nvmlDeviceGetCount_v2");
  unsigned count = 0;
  if (ask == nullptr || ask(&count) != kSuccess) return false;
  std::string first;
  for (unsigned index = 0; index < count; ++index) {
    Device device = nullptr;
    int answer = by_number(library, index, device);
    if (answer == kGpuIsLost) continue;
    auto name = answer == kSuccess ? name_of(library, device) : std::string();
    if (first.empty()) first = name;
    if (name.empty() || name != first) return false;
  }
  return true;
}

/// What NVML answers; kNotCertain where a number may mean another GPU for CUDA.
int find_device(void* library, const std::string& gpu, GpuOrder order, Device& device) {
  if (!gpu.empty() && std::isdigit(static_cast<unsigned char>(gpu[0])) != 0) {
    unsigned index = 0;
    std::from_chars(gpu.data(), gpu.data() + gpu.size(), index);
    return order == GpuOrder::kBus || all_are_alike(library) ? by_number(library, index, device) : kNotCertain;
  }
  auto by_uuid = find<ByUuid>(library, "nvmlDeviceGetHandleByUUID");
  return by_uuid == nullptr ? kNoFunction : by_uuid(gpu.c_str(), &device);
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

DriverState Nvml::state() const {
  if (answer_ == kDriverNotLoaded) return DriverState::kNotLoaded;
  return answer_ == kVersionMismatch ? DriverState::kOtherVersion : DriverState::kUnknown;
}

std::vector<GpuMemoryHolder> Nvml::holders(const std::string& gpu, GpuOrder order) const {
  Device device = nullptr;
  std::vector<GpuMemoryHolder> found;
  if (!initialised_ || find_device(library_, gpu, order, device) != kSuccess) return found;
  for (const auto& process : running(library_, device)) {
    auto bytes = process.used == kNotAvailable ? std::nullopt : std::optional<std::uint64_t>(process.used);
    found.push_back({static_cast<int>(process.pid), {}, bytes});
  }
  return found;
}

std::string Nvml::trouble(const std::string& gpu, GpuOrder order) const {
  if (!initialised_) return "";
  Device device = nullptr;
  MemoryInfo memory{};
  int answer = find_device(library_, gpu, order, device);
  auto ask_memory = find<Memory>(library_, "nvmlDeviceGetMemoryInfo");
  if (answer == kSuccess && ask_memory != nullptr) answer = ask_memory(device, &memory);
  if (answer == kGpuIsLost) return "has fallen off the bus";
  auto ask_errors = find<EccErrors>(library_, "nvmlDeviceGetTotalEccErrors");
  unsigned long long errors = 0;
  bool counts = answer == kSuccess && ask_errors != nullptr &&
                ask_errors(device, kUncorrected, kSinceDriverWasLoaded, &errors) == kSuccess;
  if (!counts || errors == 0) return "";
  return fmt::format("has had {} of its memory that could not be corrected",
                     plural(static_cast<std::int64_t>(errors), "error"));
}

std::optional<GpuDescription> Nvml::describe(const std::string& gpu, GpuOrder order) const {
  Device device = nullptr;
  if (!initialised_ || find_device(library_, gpu, order, device) != kSuccess) return std::nullopt;
  auto ask_memory = find<Memory>(library_, "nvmlDeviceGetMemoryInfo");
  auto name = name_of(library_, device);
  MemoryInfo memory{};
  if (name.empty()) return std::nullopt;
  if (ask_memory == nullptr || ask_memory(device, &memory) != kSuccess) return std::nullopt;
  return GpuDescription{std::move(name), memory.total, memory.free, trouble(gpu, order)};
}

}  // namespace taas
