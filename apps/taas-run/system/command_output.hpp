#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::cli {

/// Where what a command says about itself goes.
enum class Complaints { kShown, kDropped };

/// How a command ended that did end.
struct CommandEnd {
  int exit_code = 0;
  std::string output;
};
/// One that has not ended by then is killed, and is an error.
Result<CommandEnd> run_command(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                               Complaints complaints);

/// What a command prints. One that has not ended by then is killed, and is an error like one that fails.
Result<std::string> output_of(const std::vector<std::string>& command, std::chrono::milliseconds patience,
                              Complaints complaints);

}  // namespace taas::cli
