#pragma once

#include <csignal>

#include "base/clock.hpp"

namespace taas::run {

/// Which stop signals are the same wish once more. A batch system signals every process of a job: one wish arrives
/// directly and through the keeper, from every agent, and from its own commands, on busy machines not quite at once.
struct EchoPolicy {
  Duration within = std::chrono::milliseconds(250);  ///< of the first arrival of the same signal
  bool interrupts = false;  ///< SIGINT too; otherwise a person at a terminal sends it, who means each one

  [[nodiscard]] bool repeats(int signal, int last, Duration since) const {
    return signal == last && since < within && (interrupts || signal != SIGINT);
  }
};

}  // namespace taas::run
