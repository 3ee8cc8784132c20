#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taas {

/// A process that holds memory of a GPU.
struct GpuMemoryHolder {
  int pid = 0;                              ///< in a container of its own: that of the host
  std::string name;                         ///< of its program; empty: it is not visible here
  std::optional<std::uint64_t> bytes = {};  ///< nothing: the driver does not say
};

/// A GPU as the driver describes it.
struct GpuDescription {
  std::string name;  ///< "NVIDIA H200"
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::string trouble = {};  ///< as of gpu_trouble()
};

/// What the driver's library says of the driver when it is asked for the first time.
enum class DriverState {
  kNotLoaded,
  kOtherVersion,  ///< than its library
  kUnknown,       ///< it serves programs, has another trouble, or has not answered
};

/// The driver's library (NVML), as the loader finds it; it stays loaded.
struct DriverLibrary {
  std::string version;  ///< by the name of its file: "550.54.14"; empty: the name does not say
};

/// What numbers of GPUs mean for a process, by its CUDA_DEVICE_ORDER.
enum class GpuOrder {
  kFastestFirst,  ///< CUDA's default: unless all are of one model, numbers are others than the driver's
  kBus,           ///< PCI_BUS_ID: as for the driver
};
GpuOrder read_gpu_order(std::optional<std::string_view> value);

/// Which of the GPUs that a process sees an error is about: "GPU 1 has a total capacity of 79.10 GiB", as torch has it;
/// 0 in a text that does not say.
int gpu_of_error(std::string_view text);

/// The driver's name for a GPU that a process sees as `index`: "2", or the start of a UUID ("GPU-8a1b…"). `visible` is
/// its CUDA_VISIBLE_DEVICES. Nothing when there is no such entry.
std::optional<std::string> name_of_visible_gpu(int index, std::optional<std::string_view> visible);

/// Asks the driver (NVML) who holds memory of a GPU, the most first. Empty when there is no driver, no answer in time,
/// or when it is not certain which GPU a number means. NVML is loaded when it is asked, by a thread that is left alone
/// when it hangs, as on a GPU that has fallen off the bus.
std::vector<GpuMemoryHolder> gpu_memory_holders(const std::string& gpu, GpuOrder order,
                                                std::chrono::milliseconds patience);

/// Asks the driver in the same way what is wrong with a GPU: "has fallen off the bus". Empty: nothing that it knows.
std::string gpu_trouble(const std::string& gpu, GpuOrder order, std::chrono::milliseconds patience);

/// Asks the driver in the same way what these GPUs are, in their order; nothing for one that it does not know. Empty
/// when there is no answer in time.
std::vector<std::optional<GpuDescription>> describe_gpus(const std::vector<std::string>& gpus, GpuOrder order,
                                                         std::chrono::milliseconds patience);

/// Nothing where programs would find no library either. The driver is not asked.
std::optional<DriverLibrary> find_driver_library();

/// Asks the driver in the same way.
DriverState ask_driver_state(std::chrono::milliseconds patience);

}  // namespace taas
