#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "run/events/events.hpp"

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

/// What the logic needs to know of the plan.
struct Policy {
  int world_size = 1;
  std::vector<NodeIndex> node_of_rank;  ///< by rank
  std::vector<std::string> node_names;  ///< by node; empty: they have none
  int max_restarts = 0;                 ///< a lost node that can be replaced uses up none of them
  std::optional<std::chrono::milliseconds> restart_interval{0};     ///< between their beginnings; absent: see Restarts
  std::vector<int> stop_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};  ///< any other is only passed on to ranks
  EchoPolicy echo;
  bool shares_gpus = false;                            ///< more ranks than GPUs was asked for
  std::vector<int> preempt_signals;                    ///< mean "write a checkpoint now": ranks are told once and go on
  bool startup_needs_store = false;                    ///< programs join a process group: see startup_window
  std::chrono::milliseconds startup_window{60000};     ///< failures so soon after a start may be the same again
  std::chrono::milliseconds shutdown_timeout{30000};   ///< between a polite signal and SIGKILL
  std::chrono::milliseconds leftover_timeout{300000};  ///< for what ranks left behind that ended well; 0: none
  std::chrono::milliseconds join_notice_after{15000};  ///< then say which ranks are waited for
  std::chrono::milliseconds exit_timeout{30000};       ///< for a rank that has raised to end; 0: for ever
  std::chrono::milliseconds straggler_notice_after{30000};    ///< since others ended well: say who has not ended
  std::chrono::milliseconds straggler_notice_every{1800000};  ///< from then on

  [[nodiscard]] bool stops_the_run(int signal) const {
    return std::find(stop_signals.begin(), stop_signals.end(), signal) != stop_signals.end();
  }
  [[nodiscard]] bool asks_for_checkpoint(int signal) const {
    return std::find(preempt_signals.begin(), preempt_signals.end(), signal) != preempt_signals.end();
  }
};

}  // namespace taas::run
