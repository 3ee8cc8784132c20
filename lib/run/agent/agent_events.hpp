#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "run/events/policy.hpp"
#include "run/events/timers.hpp"
#include "run/messages/messages.hpp"

namespace taas::run {

/// The agent's patience. fence_after() is well below CoordinatorPolicy::lost_after: then the ranks of a node that
/// was given up are dead before the next generation starts elsewhere, without synchronised clocks.
struct AgentPolicy {
  Duration heartbeat_interval = std::chrono::milliseconds(250);
  Duration lost_after = std::chrono::seconds(30);  ///< as in CoordinatorPolicy
  /// Since the last answered heartbeat was *sent*.
  [[nodiscard]] Duration fence_after() const { return lost_after * 6 / 10; }
  Duration rejoin_for = std::chrono::seconds(60);   ///< how long a lost coordinator is looked for; then the agent ends
  Duration connect_for = std::chrono::seconds(60);  ///< the same before it was ever reached
  bool coordinator_first = false;  ///< it was there before this agent: where nobody listens, the run is over
  EchoPolicy echo;
  bool in_process = false;  ///< the coordinator is in this process: no heartbeats, no fence
};

// What happens to an agent.

struct LinkUp {
  Instant at;
};
struct LinkDown {
  std::string reason;
  Instant at;
  bool refused = false;           ///< a machine was reached, and nobody listens there
  std::string unknown_name = {};  ///< for which no address is known yet; empty: that is not the reason
};
struct CoordinatorSaid {
  CoordinatorMessage message;
  Instant at;
  bool aside = false;  ///< not over the link, but in answer to Ask
};
/// Something happened on this node that is told as it is: Ready, Refused, AddressesReached, Output, Remark, and the
/// events of ranks, with instants of this node's clock.
struct NodeSaid {
  AgentMessage message;
  Instant at;
};
/// This process was told to stop by the system (a stop signal reached the agent itself).
struct AgentSignalled {
  int signal;
  Instant at;
  bool reached_ranks = false;  ///< as in SignalReceived
};

using AgentEvent = std::variant<LinkUp, LinkDown, CoordinatorSaid, NodeSaid, AgentSignalled, DeadlineReached>;

inline Instant instant_of(const AgentEvent& event) {
  return std::visit([](const auto& happened) { return happened.at; }, event);
}

// What it does about it.

struct Send {
  AgentMessage message;
};
/// Carried out on this node: Welcome (prepare), ProbeAddresses, StartRanks, SignalRanks, KillGeneration,
/// SweepGeneration, OutputShown, RequestStop, Settle, Abandon, DataWorkers, FileProgress, FileStored,
/// LookAtWriters, WritersAnswer.
struct Perform {
  CoordinatorMessage message;
};
/// Connect (again).
struct Connect {};
/// The link is silent. The coordinator is to hear this over a connection of its own, since TCP may send again what it
/// has lost only after as long again as the network was cut; and the answer, too.
struct Ask {
  Heartbeat heartbeat;
};
/// The agent's work is over; nothing of the run lives on this node.
struct Leave {
  int exit_code;
  std::string reason;  ///< for the user of this node's console; empty: nothing to say
};

/// For the user of this node's console: the coordinator cannot be told.
struct TellHere {
  std::string text;
};

using AgentAction = std::variant<Send, Perform, Connect, Ask, Leave, SetDeadline, ClearDeadline, Notify, TellHere>;

}  // namespace taas::run
