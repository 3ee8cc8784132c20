#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment/environment.hpp"

namespace taas {

/// What there is to compute on, beside the CPU.
struct Gpus {
  int visible = 0;             ///< GPUs that a CUDA program started now would see
  std::string problem = {};    ///< why it would see none, although the machine has some and nobody hid them
  std::string uncounted = {};  ///< "8 AMD GPUs": other accelerators, where there is no GPU of NVIDIA's
  std::string variable = {};   ///< by which a process is given some of `uncounted`; empty: none, or there are several
  int sliced = 0;              ///< of those that this process may open: cut into MIG slices, of which CUDA shows one
};

/// Found without CUDA: by device files, by what the driver lists and, where there are neither, on the PCI bus. The
/// driver's library is asked only where versions do not fit. `environment` is that of this process.
Gpus find_gpus(const Environment& environment);

/// How many of the installed GPUs a value of CUDA_VISIBLE_DEVICES leaves: numbers, or names of GPUs, or of MIG slices,
/// whichever the first entry is. As CUDA does, all from the first invalid entry on is ignored, numbers may have letters
/// behind them, and where one is there twice there is none. No value: all. Slices are counted as if each had a process
/// of its own, which is how ranks get them: CUDA shows a process one.
int count_visible_gpus(std::optional<std::string_view> visible_devices, int installed);

/// GPUs that have MIG slices, of what /proc/driver/nvidia/capabilities has; `minors`: only these (/dev/nvidia0 …);
/// empty: all.
int count_sliced_gpus(const std::string& folder, const std::vector<int>& minors);

/// A function of a device on the PCI bus, as /sys/bus/pci/devices shows it.
struct PciDevice {
  std::string address;  ///< "0000:17:00.0"
  int vendor = 0;
  int kind = 0;        ///< the class: 0x030200, 3D controller
  int model = 0;       ///< device id, of makers whose classes do not tell
  std::string driver;  ///< of the kernel, which has taken an NVIDIA device; empty: none
};

/// Devices of the makers of accelerators, as far as it takes to tell what they are: hundreds of files would have to be
/// read of a large machine.
std::vector<PciDevice> read_pci_devices(const std::string& folder);

/// Whether it is an NVIDIA GPU that is this machine's to use, and not that of a virtual machine.
bool is_nvidia_gpu(const PciDevice& device);

/// "8 AMD GPUs, 1 Intel GPU", of makers other than NVIDIA; empty: none. Graphics that Intel has built into a CPU are
/// none.
std::string name_other_accelerators(std::span<const PciDevice> devices);

/// The variable that says which of these accelerators a process sees, by their numbers with commas between them;
/// empty: there is none, or their makers have different ones.
std::string variable_of_accelerators(std::span<const PciDevice> devices);

/// "550.54.14" of what /proc/driver/nvidia/version says; empty when there is none.
std::string version_of_driver(std::string_view text);

}  // namespace taas
