#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proc/machine/gpu_memory.hpp"

namespace taas {

/// NVIDIA's management library, as far as it is used here; its functions are found by name, since few machines have it.
/// Numbers and layouts: docs.nvidia.com/deploy/nvml-api.
class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// The library's own file; nothing when it is not there. It is loaded, and the driver is not asked.
  static std::optional<std::string> file();

  [[nodiscard]] DriverState state() const;
  /// Of compute processes; without their names. Empty when the library or the GPU is not there, or when a number may
  /// mean another GPU for CUDA.
  std::vector<GpuMemoryHolder> holders(const std::string& gpu, GpuOrder order) const;
  /// "has fallen off the bus"; empty: none that the driver knows, and in the same cases.
  [[nodiscard]] std::string trouble(const std::string& gpu, GpuOrder order) const;
  /// Nothing in the same cases.
  std::optional<GpuDescription> describe(const std::string& gpu, GpuOrder order) const;

 private:
  void* library_ = nullptr;  ///< never unloaded: it may have threads
  int answer_ = 0;           ///< to the initialisation
  bool initialised_ = false;
};

}  // namespace taas
