#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// Where what a command says about itself goes.
enum class Complaints { kShown, kDropped };

/// How a command ended that did end.
struct CommandEnd {
  int exit_code = 0;  ///< -1: somebody else in this process, such as a Family, has reaped it
  std::string output;
};
/// One that has not ended by then is killed, and is an error. Its input is the launcher's own unless one is given.
Result<CommandEnd> run_command(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                               Complaints complaints, const Fd* input = nullptr);

/// What a command prints. One that has not ended by then is killed, and is an error like one that fails.
Result<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                              Complaints complaints);

}  // namespace taas
