#pragma once

#include <optional>

namespace taas {

/// How many processes the kernel's out-of-memory killer has killed in this process's memory control group, and in the
/// groups below it where control groups are version 2. A rank that dies by SIGKILL while this grows was its victim.
/// Outside of any group the count is the whole machine's. Empty where the kernel tells neither.
std::optional<long> oom_kills();

}  // namespace taas
