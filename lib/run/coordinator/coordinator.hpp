#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "run/coordinator/data_nodes.hpp"
#include "run/events/agent_id.hpp"
#include "run/messages/messages.hpp"
#include "run/supervisor/supervisor.hpp"

namespace taas::run {

/// What the logic needs to know to choose nodes.
struct CoordinatorPolicy {
  Policy run;                           ///< world_size and node_of_rank are overwritten for each generation
  std::vector<int> ranks_on_node;       ///< with all nodes there; its size is the most nodes a generation has
  bool nodes_count_themselves = false;  ///< an agent that says Hello::ranks gets as many, whatever ranks_on_node says
  int min_nodes = 1;        ///< fewer than ranks_on_node.size() only for elastic runs, whose nodes are equal
  int expected_agents = 1;  ///< hosts that were asked: nobody else is waited for
  std::vector<std::string> host_names;  ///< by order, for messages; empty: not known beforehand
  std::string launch;                   ///< Welcome::run
  std::string version;  ///< of taas-run; agents of another one are dismissed with a line that names both
  Duration lost_after = std::chrono::milliseconds(2500);   ///< without a heartbeat
  Duration closed_grace = std::chrono::milliseconds(500);  ///< between an agent's closed link and a new generation
  Duration gather_timeout = std::chrono::seconds(600);     ///< for enough nodes to be there
  Duration elastic_wait = std::chrono::seconds(30);        ///< for more than min_nodes while hosts are missing
  Duration answer_patience{};  ///< for hosts that have not answered when others have failed, so that all are named
  Duration startup_window = std::chrono::seconds(60);  ///< see Supervisor: start-up errors are not restarted
  bool nodes_may_leave = false;  ///< an agent that is told to stop leaves, where the others are enough for a generation
  bool tells_verdict = false;    ///< agents have consoles of their own: they are told how the run ended
  bool in_process = false;       ///< the only agent with ranks is in this process: no heartbeats, no probing
  DataNodesPolicy data = {};     ///< CPU machines with agents of their own; none: they are simulated in this process
  std::string loader = {};       ///< --loader: ranks start when data workers have prepared it; empty: at once
  std::string folder = {};       ///< the mark of the run's folder; an agent that tells another one sees another
                                 ///< folder. Empty: all nodes see the same one
};

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
using CoordinatorEvent =
    std::variant<Event, AgentArrived, AgentSaid, AgentLeft, HostFailed, OutputPlaced, CoordinatorStalled>;

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

using CoordinatorAction = std::variant<Happened, Action, Tell, Drop, StartAgent, ReceiveFiles, PlaceOutput>;

/// The run's logic over all nodes: who is there, which of them make up a generation, and what the Supervisor decides
/// about its ranks. Pure.
class Coordinator {
 public:
  explicit Coordinator(CoordinatorPolicy policy);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  std::vector<CoordinatorAction> handle(const CoordinatorEvent& event);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::run
