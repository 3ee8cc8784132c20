#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "run/events/words.hpp"
#include "run/scenario.hpp"
#include "run/supervisor/supervisor.hpp"

// What tests of the Supervisor feed it with, and what it decides in few words.
namespace taas::run::supervisor_drive {

using Strings = std::vector<std::string>;

inline std::string list(const std::vector<Rank>& chosen) {
  std::vector<int> numbers;
  for (Rank rank : chosen) numbers.push_back(rank.value);
  return fmt::format("{}", fmt::join(numbers, ","));
}

inline std::string brief(const GatherNodes& a) { return fmt::format("gather {}", a.generation.value); }
inline std::string brief(const RequestStop& a) { return fmt::format("request stop {}", a.signal); }
inline std::string brief(const StartGeneration& a) { return fmt::format("start {}", a.generation.value); }
inline std::string brief(const SignalRanks& a) {
  return fmt::format("{} to {}{}", signal_name(a.signal), list(a.ranks), a.to_end ? "" : " that handle it");
}
inline std::string brief(const KillGeneration&) { return "kill"; }
inline std::string brief(const SweepGeneration& a) {
  return a.signal == 0 ? "await leftovers" : fmt::format("sweep {}", signal_name(a.signal));
}
inline std::string brief(const SetDeadline&) { return {}; }
inline std::string brief(const ClearDeadline&) { return {}; }
inline std::string brief(const SettleOutput& a) { return a.publish ? "settle" : "settle nothing"; }
inline std::string brief(const Notify& a) { return "say " + a.text; }
inline std::string brief(const ReportFailure& a) {
  return fmt::format("report {}{}", a.verdict.summary, a.restarting ? ", restarting" : "");
}
inline std::string brief(const Finish& a) {
  return fmt::format("finish {} {}", a.verdict.exit_code, a.verdict.summary);
}

/// One run, driven by hand. Every function returns what was decided, in short; deadlines are left out, of which the
/// last one that was set is `due`. Nodes are there when they are asked for, unless the test gathers them itself.
class Drive {
 public:
  explicit Drive(const Policy& policy, bool gathers = true)
      : world_size_(policy.world_size), nodes_(policy.node_of_rank), gathers_(gathers), supervisor_(policy) {}

  Strings start() { return feed(RunStarted{at_ms(0)}); }
  Strings gathered(long when) { return feed(NodesGathered{world_size_, nodes_, {}, at_ms(when)}); }
  Strings begin() {
    auto decided = start();
    spawn_all();
    return decided;
  }
  void spawn_all() {
    for (int rank = 0; rank < world_size_; ++rank) spawned(rank);
  }
  Strings spawned(int rank) { return feed(RankSpawned{generation, Rank{rank}, 100 + rank, at_ms(0)}); }
  Strings unspawned(int rank, long when) {
    return feed(RankSpawnFailed{generation, Rank{rank}, ENOENT, "cannot execute ./x: no such file", at_ms(when)});
  }
  Strings joined(int rank, long when) { return feed(RankJoined{generation, Rank{rank}, at_ms(when)}); }
  Strings exited(int rank, long when, ExitStatus status = {}) {
    return feed(RankExited{generation, Rank{rank}, status, {}, at_ms(when)});
  }
  Strings gone(long when) { return feed(GenerationGone{generation, at_ms(when)}); }
  Strings signal(int number, long when) { return feed(SignalReceived{number, at_ms(when)}); }
  Strings deadline(long when) { return feed(DeadlineReached{at_ms(when)}); }
  Strings time_is_up() { return feed(DeadlineReached{due.value()}); }
  Strings settled(long when, std::string error = "") { return feed(OutputSettled{std::move(error), at_ms(when)}); }

  Strings feed(const Event& event) {
    Strings decided;
    bool asked = false;
    for (const auto& action : supervisor_.handle(event)) {
      if (const auto* set = std::get_if<SetDeadline>(&action)) due = set->at;
      if (std::holds_alternative<ClearDeadline>(action)) due.reset();
      const bool gather = gathers_ && std::holds_alternative<GatherNodes>(action);
      asked = asked || gather;
      auto text = std::visit([](const auto& chosen) { return brief(chosen); }, action);
      if (!gather && !text.empty()) decided.push_back(std::move(text));
    }
    if (!asked) return decided;
    for (auto& then : gathered(0)) decided.push_back(std::move(then));
    return decided;
  }

  Generation generation{0};
  std::optional<Instant> due;

 private:
  int world_size_;
  std::vector<NodeIndex> nodes_;
  bool gathers_;
  Supervisor supervisor_;
};

inline const ExitStatus kTerminated{0, SIGTERM};
inline const ExitStatus kKilled{0, SIGKILL};

}  // namespace taas::run::supervisor_drive
