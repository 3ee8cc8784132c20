#include "proc/machine/gpus.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "base/text.hpp"
#include "proc/machine/gpu_memory.hpp"

namespace taas {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPciDevices = "/sys/bus/pci/devices";
constexpr const char* kCapabilities = "/proc/driver/nvidia/capabilities";
constexpr const char* kDriverVersion = "/proc/driver/nvidia/version";
constexpr auto kDriverPatience = std::chrono::seconds(1);
constexpr int kNvidia = 0x10de, kIntel = 0x8086;
constexpr int kDisplay = 0x03, kProcessing = 0x12;  // base classes
constexpr int kNoLimit = 1 << 16;

/// Which of a maker's devices are accelerators.
struct Maker {
  int vendor;
  const char* one;
  const char* variable;             ///< as in Gpus
  std::array<int, 2> classes = {};  ///< base classes of the PCI specification
  std::array<int, 8> models = {};   ///< where its classes do not tell
};

// Models of TPUs are those that JAX looks for, those of Neuron devices AWS's.
constexpr Maker kMakers[] = {
    {0x1002, "AMD GPU", "HIP_VISIBLE_DEVICES", {kDisplay, kProcessing}, {}},
    {kIntel, "Intel GPU", "ZE_AFFINITY_MASK", {kDisplay, kDisplay}, {}},
    {0x1da3, "Gaudi accelerator", "HABANA_VISIBLE_MODULES", {kProcessing, kProcessing}, {}},
    {0x19e5, "Ascend NPU", "ASCEND_RT_VISIBLE_DEVICES", {kProcessing, kProcessing}, {}},
    {0x1ae0, "TPU chip", "", {}, {0x0027, 0x0056, 0x005e, 0x0062, 0x0063, 0x006f, 0x0076}},
    {0x1d0f, "AWS Neuron device", "", {}, {0x7064, 0x7164, 0x7264, 0x7364}},
};
constexpr std::string_view kIntegrated = "0000:00:";  // the bus of graphics that are part of Intel's CPUs

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

struct DeviceFiles {
  int all = 0;
  std::vector<int> usable = {};  ///< numbers of those that this process may open; a batch system withholds others' ones
};

DeviceFiles count_device_files() {
  DeviceFiles files;
  std::error_code failed;
  for (fs::directory_iterator entry("/dev", failed), end; !failed && entry != end; entry.increment(failed)) {
    auto name = entry->path().filename().string();
    if (!name.starts_with("nvidia") || !is_number(std::string_view(name).substr(6))) continue;
    ++files.all;
    if (::access(entry->path().c_str(), R_OK | W_OK) == 0) files.usable.push_back(std::atoi(&name[6]));
  }
  return files;
}

/// The driver makes the device files when the first CUDA program runs: until then it lists its GPUs only here.
int gpus_of_driver() {
  std::error_code none;
  fs::directory_iterator entry("/proc/driver/nvidia/gpus", none), end;
  return none ? 0 : static_cast<int>(std::distance(entry, end));
}

constexpr std::string_view kGpuName = "GPU-", kSliceName = "MIG-";

/// What tells an entry of CUDA_VISIBLE_DEVICES from others of its kind; empty: the list ends here.
std::string identity_of(std::string_view entry, std::string_view kind, int installed) {
  if (!kind.empty()) return entry.starts_with(kind) ? std::string(entry) : std::string();
  int index = 0;
  auto [rest, problem] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (problem != std::errc() || index < 0 || index >= installed) return {};
  return std::to_string(index);
}

/// Of all entries of CUDA_VISIBLE_DEVICES; empty: they are numbers.
std::string_view kind_of(std::string_view visible_devices) {
  for (auto kind : {kGpuName, kSliceName}) {
    if (trim(visible_devices, " ").starts_with(kind)) return kind;
  }
  return {};
}

/// The entries of CUDA_VISIBLE_DEVICES up to the first that is none.
std::vector<std::string> valid_entries(std::string_view visible_devices, int installed) {
  auto kind = kind_of(visible_devices);
  std::vector<std::string> found;
  for (auto entry : split(visible_devices, ',')) {
    auto identity = identity_of(trim(entry, " "), kind, installed);
    if (identity.empty()) break;
    found.push_back(std::move(identity));
  }
  return found;
}

bool has_one_twice(std::vector<std::string> entries) {
  std::ranges::sort(entries);
  return std::ranges::adjacent_find(entries) != entries.end();
}

int read_hexadecimal(const fs::path& file) {
  auto text = read_file(file.string());
  return text ? static_cast<int>(std::strtol(text->c_str(), nullptr, 16)) : 0;
}

const Maker* find_maker(int vendor) {
  const auto* found = std::ranges::find(kMakers, vendor, &Maker::vendor);
  return found == std::end(kMakers) ? nullptr : found;
}

bool is_accelerator(const PciDevice& device, const Maker& maker) {
  if (device.vendor == kIntel && device.address.starts_with(kIntegrated)) return false;
  auto base = device.kind >> 16;
  return (base != 0 && std::ranges::find(maker.classes, base) != maker.classes.end()) ||
         (device.model != 0 && std::ranges::find(maker.models, device.model) != maker.models.end());
}

std::ptrdiff_t count_accelerators(std::span<const PciDevice> devices, const Maker& maker) {
  return std::ranges::count_if(
      devices, [&](const auto& device) { return device.vendor == maker.vendor && is_accelerator(device, maker); });
}

/// A job that got no GPUs runs on the CPU because it was submitted so, whatever its node has.
bool is_job_without_gpus(const Environment& environment) {
  return environment.contains("SLURM_JOB_ID") && !environment.contains("SLURM_GPUS_ON_NODE") &&
         !environment.contains("CUDA_VISIBLE_DEVICES");
}

std::string read_driver_version() {
  auto text = read_file(kDriverVersion);
  return text ? version_of_driver(*text) : std::string();
}

/// Programs find no GPU, though each has a device file, when driver and library are of different versions, as after an
/// update, or when the driver was unloaded. The names of files tell that it may be so; the library then says it.
std::string trouble_with_driver() {
  auto driver = read_driver_version();
  auto library = find_driver_library();
  if (!library || (!driver.empty() && (library->version.empty() || library->version == driver))) return "";
  switch (ask_driver_state(kDriverPatience)) {
    case DriverState::kNotLoaded:
      return "the NVIDIA driver is not loaded, though its device files are there: modprobe nvidia, or see dmesg";
    case DriverState::kOtherVersion:
      return fmt::format(
          "the NVIDIA driver in the kernel{} and its library{} do not fit (driver/library version mismatch): reboot, "
          "or load the driver again",
          driver.empty() ? "" : " (" + driver + ")", library->version.empty() ? "" : " (" + library->version + ")");
    case DriverState::kUnknown:
      break;
  }
  return "";
}

/// GPUs that the driver lists, and this process cannot reach. Without their files and with the driver's library, CUDA
/// makes the files.
std::string name_withheld_gpus(int device_files, int listed) {
  if (listed == 0) return "";
  if (device_files > 0) {
    return fmt::format("this process may not open the device files of {} (/dev/nvidia0 …)",
                       plural(device_files, "NVIDIA GPU"));
  }
  if (find_driver_library()) return "";
  return fmt::format(
      "the NVIDIA driver lists {}, but neither device files nor libnvidia-ml.so.1 are here: a container "
      "has to be given its GPUs (docker run --gpus all)",
      plural(listed, "GPU"));
}

/// GPUs on the bus, and no driver that serves them.
std::string name_idle_gpus(const std::vector<PciDevice>& gpus) {
  auto these = fmt::format("this machine has {}", plural(static_cast<std::int64_t>(gpus.size()), "NVIDIA GPU"));
  auto version = read_driver_version();
  const auto& holder = gpus.front().driver;
  if (!version.empty()) return fmt::format("{}, and the driver ({}) lists none: see dmesg", these, version);
  if (!holder.empty() && holder != "nvidia") {
    return fmt::format("{} under the kernel's driver {}, which CUDA cannot use: install NVIDIA's", these, holder);
  }
  return these + ", and the NVIDIA driver is not loaded: modprobe nvidia, or see dmesg";
}

/// On the machine there is neither a device file nor an entry of the driver.
Gpus look_on_bus(std::optional<std::string_view> visible, bool job_without_gpus) {
  auto devices = read_pci_devices(kPciDevices);
  Gpus found;
  found.uncounted = name_other_accelerators(devices);
  found.variable = variable_of_accelerators(devices);
  std::erase_if(devices, [](const auto& device) { return !is_nvidia_gpu(device); });
  bool wanted = count_visible_gpus(visible, static_cast<int>(devices.size())) > 0 && !job_without_gpus;
  if (wanted) found.problem = name_idle_gpus(devices);
  return found;
}

}  // namespace

int count_visible_gpus(std::optional<std::string_view> visible_devices, int installed) {
  if (!visible_devices || installed == 0) return installed;
  auto entries = valid_entries(*visible_devices, installed);
  return has_one_twice(entries) ? 0 : static_cast<int>(entries.size());
}

int count_sliced_gpus(const std::string& folder, const std::vector<int>& minors) {
  int count = 0;
  std::error_code failed;
  for (fs::directory_iterator gpu(folder, failed), end; !failed && gpu != end; gpu.increment(failed)) {
    auto name = gpu->path().filename().string();
    if (!name.starts_with("gpu") || !is_number(std::string_view(name).substr(3))) continue;
    if (!minors.empty() && std::ranges::find(minors, std::atoi(&name[3])) == minors.end()) continue;
    std::error_code none;
    fs::directory_iterator slice(gpu->path() / "mig", none);
    auto is_slice = [](const auto& entry) { return entry.path().filename().string().starts_with("gi"); };
    if (!none && std::any_of(fs::begin(slice), fs::end(slice), is_slice)) ++count;
  }
  return count;
}

std::vector<PciDevice> read_pci_devices(const std::string& folder) {
  std::vector<PciDevice> devices;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    PciDevice device{entry->path().filename().string(), read_hexadecimal(entry->path() / "vendor"), 0, 0, {}};
    const auto* maker = find_maker(device.vendor);
    if (device.vendor != kNvidia && maker == nullptr) continue;
    device.kind = read_hexadecimal(entry->path() / "class");
    if (maker != nullptr && maker->models.front() != 0) device.model = read_hexadecimal(entry->path() / "device");
    std::error_code none;
    if (maker == nullptr) device.driver = fs::read_symlink(entry->path() / "driver", none).filename().string();
    devices.push_back(std::move(device));
  }
  std::ranges::sort(devices, {}, &PciDevice::address);
  return devices;
}

bool is_nvidia_gpu(const PciDevice& device) {
  bool given_away = device.driver == "vfio-pci" || device.driver == "pci-stub";
  return device.vendor == kNvidia && device.kind >> 16 == kDisplay && !given_away;
}

std::string name_other_accelerators(std::span<const PciDevice> devices) {
  std::vector<std::string> names;
  for (const auto& maker : kMakers) {
    auto count = count_accelerators(devices, maker);
    if (count > 0) names.push_back(plural(count, maker.one));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string variable_of_accelerators(std::span<const PciDevice> devices) {
  std::vector<std::string> variables;
  for (const auto& maker : kMakers) {
    if (count_accelerators(devices, maker) > 0) variables.emplace_back(maker.variable);
  }
  return variables.size() == 1 ? variables.front() : "";
}

std::string version_of_driver(std::string_view text) {
  auto line = text.substr(0, text.find('\n'));
  for (auto word : split(line, ' ')) {
    bool is_version = word.find('.') != word.npos && word.find_first_not_of("0123456789.") == word.npos;
    if (is_version) return std::string(word);
  }
  return "";
}

Gpus find_gpus(const Environment& environment) {
  auto value = find_variable(environment, "CUDA_VISIBLE_DEVICES");
  auto visible = value ? std::optional<std::string_view>(*value) : std::nullopt;
  if (visible && valid_entries(*visible, kNoLimit).empty()) return {};  // nobody is to see what there is
  bool job_without_gpus = is_job_without_gpus(environment);
  auto files = count_device_files();
  int listed = files.usable.empty() ? gpus_of_driver() : 0;
  int installed = static_cast<int>(files.usable.size()) + listed;
  if (installed == 0) return look_on_bus(visible, job_without_gpus);
  if (visible && has_one_twice(valid_entries(*visible, installed))) {
    return {0, fmt::format("CUDA_VISIBLE_DEVICES={} has one twice, and CUDA shows none then", printable(*visible))};
  }
  int count = count_visible_gpus(visible, installed);
  if (count == 0) return {};
  if (auto why = name_withheld_gpus(files.all, listed); !why.empty()) {
    return job_without_gpus ? Gpus() : Gpus{0, std::move(why)};
  }
  if (auto trouble = trouble_with_driver(); !trouble.empty()) return {0, std::move(trouble)};
  int sliced = count_sliced_gpus(kCapabilities, files.usable);
  bool by_name = visible && !kind_of(*visible).empty();
  if (sliced > 0 && !by_name) count = std::max(1, std::min(count, installed - sliced));
  return {.visible = count, .sliced = sliced};
}

}  // namespace taas
