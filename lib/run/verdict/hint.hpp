#pragma once

#include <string>
#include <string_view>

#include "run/events/events.hpp"

namespace taas::run {

/// Whether ranks have GPUs of their own, or share them (--oversubscribe).
enum class Gpus { kOwn, kShared };

/// One line on what to do next, where a known cause has a known way out; empty otherwise. `text` is what the culprit
/// said, `gpu_holders` who holds the memory of its GPU, where that is what was too little (name_gpu_holders).
std::string find_hint(Cause cause, const ExitStatus& status, std::string_view text, Gpus gpus = Gpus::kOwn,
                      std::string_view gpu_holders = {});

}  // namespace taas::run
