#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace taas {

/// Cores that this process may keep busy: its affinity mask, and no more than the CPU quota of its control groups,
/// rounded up. At least 1.
int usable_cores();

/// GPUs that a CUDA program started now would see, without CUDA.
int visible_gpus();

/// How many of the installed GPUs a value of CUDA_VISIBLE_DEVICES leaves: numbers, GPU and MIG names; as CUDA does, all
/// from the first invalid entry on is ignored. No value: all.
int count_visible_gpus(std::optional<std::string_view> visible_devices, int installed);

std::string hostname();

}  // namespace taas
