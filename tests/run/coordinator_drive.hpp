#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "run/coordinator/coordinator.hpp"
#include "scenario.hpp"

// What tests of the coordinator feed it with, and what it decides in few words.
namespace taas::run {

using Strings = std::vector<std::string>;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

inline std::string brief(const StartRanks& m) {
  Strings shares;
  for (const auto& share : m.shares) {
    auto last = share.first_rank.value + share.local_world_size - 1;
    shares.push_back(fmt::format("node {} ranks {}-{}", share.node.value, share.first_rank.value, last));
  }
  return fmt::format("start {} {} of {} at {}{}{}", m.generation.value, fmt::join(shares, " "), m.world_size,
                     m.master_addr, m.servers.empty() ? "" : " servers ", fmt::join(m.servers, ","));
}

inline std::string brief(const PlaceOutput& m) {
  Strings waiting;
  for (const auto& of : m.waiting) waiting.push_back(fmt::format("{} of {}", of.folder, of.host));
  return fmt::format("place {}", fmt::join(waiting, ", "));
}

inline std::string brief(const DataWorkers& m) {
  Strings ports;
  for (const auto& worker : m.workers) ports.push_back(worker.addresses.empty() ? "-" : std::to_string(worker.port));
  return fmt::format("workers {}", fmt::join(ports, " "));
}

inline std::string brief(const CoordinatorMessage& message) {
  return std::visit(
      Overloaded{
          [](const Welcome&) { return std::string("welcome"); },
          [](const Dismissed& m) { return fmt::format("dismissed {} {}", m.exit_code, m.reason); },
          [](const ProbeAddresses&) { return std::string("probe"); }, [](const StartRanks& m) { return brief(m); },
          [](const SignalRanks& m) { return fmt::format("signal {} to {}", m.signal, m.ranks.size()); },
          [](const KillGeneration&) { return std::string("kill"); },
          [](const SweepGeneration&) { return std::string("sweep"); },
          [](const HeartbeatEcho&) { return std::string("echo"); },
          [](const Settle& m) { return std::string(m.publish ? "settle" : "settle nothing"); },
          [](const Abandon&) { return std::string("abandon"); },
          [](const LookAtWriters& m) { return fmt::format("look {}", m.number); },
          [](const WritersAnswer& m) { return fmt::format("writers {} {}", m.number, m.well ? "well" : "not well"); },
          [](const RequestStop& m) { return fmt::format("checkpoint {}", m.signal); },
          [](const OutputShown&) { return std::string("shown"); },
          [](const FileProgress&) { return std::string("progress"); },
          [](const FileStored&) { return std::string("stored"); }, [](const DataWorkers& m) { return brief(m); }},
      message);
}

inline std::string brief(const Action& action) {
  return std::visit(Overloaded{[](const Notify& a) { return "say " + a.text; },
                               [](const ReportFailure& a) { return "report " + a.verdict.summary; },
                               [](const Finish& a) { return fmt::format("finish {}", a.verdict.exit_code); },
                               [](const auto&) { return std::string(); }},
                    action);
}

inline std::string brief(const CoordinatorAction& action) {
  return std::visit(
      Overloaded{[](const Happened&) { return std::string(); }, [](const Action& a) { return brief(a); },
                 [](const Tell& a) { return fmt::format("{}: {}", a.agent.value, brief(a.message)); },
                 [](const Drop& a) { return fmt::format("drop {}", a.agent.value); },
                 [](const StartAgent& a) { return fmt::format("start agent {}", a.order); },
                 [](const ReceiveFiles& a) { return fmt::format("{} into {}", a.agent.value, a.folder); },
                 [](const PlaceOutput& a) { return brief(a); },
                 [](const ReleaseNodes&) { return std::string("release nodes"); },
                 [](const AwaitAnswers&) { return std::string(); }, [](const Parted&) { return std::string(); }},
      action);
}

inline CoordinatorPolicy policy(int nodes, int min_nodes, int expected) {
  CoordinatorPolicy made;
  made.ranks_on_node.assign(static_cast<std::size_t>(nodes), 2);
  made.min_nodes = min_nodes;
  made.expected_agents = expected;
  made.version = "1.0";
  made.lost_after = std::chrono::milliseconds(2500);
  return made;
}

inline Hello hello(int order) {
  Hello made;
  made.version = "1.0";
  made.hostname = "host" + std::to_string(order);
  made.instance = made.hostname;
  made.order = order;
  made.addresses = {"10.0.0." + std::to_string(order)};
  return made;
}

/// A coordinator and what it decides; journal, deadlines and the like are left out.
class Drive {
 public:
  explicit Drive(CoordinatorPolicy policy) : coordinator_(std::move(policy)) { feed(Event(RunStarted{at_ms(0)})); }

  Strings feed(const CoordinatorEvent& event) {
    Strings decided;
    for (const auto& action : coordinator_.handle(event)) {
      parted = parted || std::holds_alternative<Parted>(action);
      note(action);
      if (auto text = brief(action); !text.empty()) decided.push_back(text);
    }
    return decided;
  }
  Strings arrive(int agent, Hello who, long when) {
    return feed(AgentArrived{AgentId{agent}, std::move(who), at_ms(when)});
  }
  Strings said(int agent, AgentMessage message, long when) {
    return feed(AgentSaid{AgentId{agent}, std::move(message), at_ms(when)});
  }
  Strings probed(int agent, long when) { return said(agent, AddressesReached{{"10.0.0.0", "10.0.0.9"}, 1}, when); }
  Strings exited(int agent, int generation, int rank, ExitStatus status, long when) {
    return said(agent, RankExited{Generation{generation}, Rank{rank}, status, {}, at_ms(when)}, when);
  }
  Strings gone(int agent, int generation, long when) {
    return said(agent, GenerationGone{Generation{generation}, at_ms(when)}, when);
  }
  Strings left(int agent, long when) {
    return feed(AgentLeft{AgentId{agent}, "its agent has ended", true, at_ms(when)});
  }
  Strings deadline(long when) { return feed(Event(DeadlineReached{at_ms(when)})); }
  /// Agents 0..count-1 on hosts 0..count-1, up to where ranks start.
  void gather(int count, long when = 0) {
    for (int i = 0; i < count; ++i) {
      arrive(i, hello(i), when);
      said(i, Ready{4711}, when);
    }
    for (int i = 0; i < count; ++i) probed(i, when);
  }

  bool parted = false;            ///< nobody is waited for any more
  std::vector<NodeIndex> silent;  ///< that were told of last
  Duration silence{};             ///< of those that have answered again

 private:
  void note(const CoordinatorAction& action) {
    const auto* happened = std::get_if<Happened>(&action);
    if (happened == nullptr) return;
    if (const auto* told = std::get_if<NodesSilent>(&happened->event)) silent = told->nodes;
    if (const auto* told = std::get_if<NodesAnswer>(&happened->event)) silence = told->silence;
  }

  Coordinator coordinator_;
};

inline const ExitStatus kTerminated{0, 15};

}  // namespace taas::run
