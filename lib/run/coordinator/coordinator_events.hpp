#pragma once

#include <string>
#include <variant>
#include <vector>

#include "run/events/agent_id.hpp"
#include "run/messages/messages.hpp"

namespace taas::run {

// What happens. Events of the run itself (RunStarted, SignalReceived, DeadlineReached) come as run::Event.

struct AgentArrived {
  AgentId agent;
  Hello hello;
  Instant at;
};
struct AgentSaid {
  AgentId agent;
  AgentMessage message;
  Instant at;
};
struct AgentLeft {
  AgentId agent;
  std::string reason;
  bool closed_by_agent = true;  ///< false: this side broke the link, and the agent may not know it yet
  Instant at;
};
/// The way onto a host failed (ssh refused, wrong key, no binary): its agent will not come. Names the host and why.
struct HostFailed {
  int order;
  std::string message;
  Instant at;
};

/// PlaceOutput is done: `error` says what has got no name.
struct OutputPlaced {
  std::string error;
  int files;  ///< how many have got one
  Instant at;
};

/// This process did not run for so long: what agents have said meanwhile was not heard, and they were not answered.
struct CoordinatorStalled {
  Duration lasted{};
  Instant at;
};
/// The job of the nodes that ReleaseNodes is about is over: nobody comes from there any more.
struct NodesOver {
  std::string why;
  Instant at;
};
using CoordinatorEvent =
    std::variant<Event, AgentArrived, AgentSaid, AgentLeft, HostFailed, OutputPlaced, CoordinatorStalled, NodesOver>;

/// When it became known.
inline Instant instant_of(const CoordinatorEvent& event) {
  return std::visit(
      [](const auto& happened) {
        if constexpr (std::is_same_v<std::decay_t<decltype(happened)>, Event>)
          return instant_of(happened);
        else
          return happened.at;
      },
      event);
}

// What to do about it. Every run::Action of the Supervisor comes out, for the journal and the display; of these only
// SetDeadline, ClearDeadline and Finish are left to carry out, since the others are told to agents as well.

/// The Supervisor was told this: for the journal and the display. Comes before what was decided on it.
struct Happened {
  Event event;
};

struct Tell {
  AgentId agent;
  CoordinatorMessage message;
};
/// Break the link to this agent; AgentLeft must not follow.
struct Drop {
  AgentId agent;
  std::string reason;
};
/// Start an agent on this host of the list again: the former one was lost.
struct StartAgent {
  int order;
};

/// Files that this agent sends from now on lie in this folder, relative to the run's. It may send none before.
struct ReceiveFiles {
  AgentId agent;
  std::string host;
  std::string folder;
};
/// Files of a node whose folder is not rank 0's, which have their names within a folder of their own.
struct WaitingOutput {
  std::string folder;  ///< relative to the run's
  NodeIndex node;
  std::string host;
};
/// Give these files their names, in this order; nobody writes to them any more. OutputPlaced must follow.
struct PlaceOutput {
  std::vector<WaitingOutput> waiting;
};

/// --loader is prepared: the nodes that are held may come (CoordinatorPolicy::nodes_are_held). Once.
struct ReleaseNodes {};

/// After Finish: agents have not answered its Dismissed yet. DeadlineReached is to follow then.
struct AwaitAnswers {
  Instant until;
};
/// After Finish, the last of all: every agent knows how the run ended, or cannot be told.
struct Parted {};

using CoordinatorAction = std::variant<Happened, Action, Tell, Drop, StartAgent, ReceiveFiles, PlaceOutput,
                                       ReleaseNodes, AwaitAnswers, Parted>;

}  // namespace taas::run
