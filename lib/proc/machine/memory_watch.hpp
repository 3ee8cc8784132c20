#pragma once

#include <cstdint>
#include <optional>

namespace taas {

/// How many processes the kernel's out-of-memory killer has killed in this process's memory control group, and in the
/// groups below it where control groups are version 2. A rank that dies by SIGKILL while this grows was its victim.
/// Outside of any group the count is the whole machine's. Empty where the kernel tells neither.
std::optional<long> oom_kills();

/// Bytes that programs may still take without swapping: of the machine (MemAvailable of proc_meminfo(5)), and no more
/// than the limits of this process's memory control groups leave. Empty where the kernel tells neither.
std::optional<std::int64_t> available_memory();

}  // namespace taas
