#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/ranks/rank_placement.hpp"
#include "run/events/data_events.hpp"
#include "run/events/events.hpp"
#include "run/events/training_facts.hpp"

namespace taas {

BOOST_DESCRIBE_STRUCT(NodeShare, (), (node, first_rank, local_world_size))

}  // namespace taas

namespace taas::run {

/// Raised when a message changes its meaning; agent and coordinator are the same release otherwise, which Hello checks.
inline constexpr int kProtocolVersion = 2;

// What an agent and the coordinator say to each other. Instants are the coordinator's clock: an agent converts its own
// with the offset that heartbeats measure (run/agent/clock_offset.hpp).

// Agent to coordinator.

/// What an agent is there for: ranks, or data workers. A data node is no node of the world.
enum class AgentRole { kRanks, kData };
/// The first message: who is there.
struct Hello {
  int protocol = kProtocolVersion;
  std::string version;   ///< of taas-run
  std::string hostname;  ///< for people
  std::string instance;  ///< random, of this process: so an agent that connects again is told from a second one
  int order = -1;        ///< place in the host list, SLURM's node id or --node-rank; -1: any
  int plays = 1;         ///< how many nodes this agent can be at once: more than one only for simulated nodes
  int gpus = 0;
  int cores = 1;
  std::vector<std::string> addresses;  ///< numeric, where other nodes may be able to reach this one
  AgentRole role = AgentRole::kRanks;
  int ranks = 0;  ///< how many it wants to have, where nodes count for themselves; 0: as the coordinator has planned
};
/// The program was found, the folder can be written, the store listens.
struct Ready {
  std::uint16_t store_port = 0;
  std::vector<std::uint16_t> data_ports = {};  ///< of a data node: one for each of its workers
  std::vector<std::uint16_t> rank_ports = {};  ///< held for servers that ranks open: one for each that may be here
  std::string folder = {};  ///< the mark of the run's folder there (storage/folder_marker.hpp); empty: it has none
  std::string view = {};    ///< by which kernel and mount it sees that folder: only its writes are told there
};
/// A publisher that sees the same folder by the same kernel as others has closed files at hand: do the others' ranks go
/// on well? Answered with WritersAnswer, unless one of them is lost.
struct AskWriters {
  Generation generation;
  std::uint64_t number = 0;
};
/// The answer to LookAtWriters: whether no rank there has raised, failed, or been told to end.
struct WritersSeen {
  std::uint64_t number = 0;
  bool well = false;
};
/// This node cannot take part. The message says why and does not name the node.
struct Refused {
  std::string message;
};
/// Which addresses of ProbeAddresses answered.
struct AddressesReached {
  std::vector<std::string> addresses;
  int probe = 0;  ///< which one; filled in by run::Agent
};
/// Sent at a fixed interval; the agent's own clock.
struct Heartbeat {
  std::uint64_t number = 0;
  Instant sent;
  std::string instance = {};  ///< Hello::instance, over a connection that nothing else is said on; else empty
};
/// One line of a rank's output that is shown on the console.
struct OutputText {
  Rank rank;
  bool is_stderr = false;
  bool progress = false;
  std::string text;
  Instant at;
  bool open = false;                    ///< the line has not ended
  std::optional<std::string> raw = {};  ///< the bytes that the rank wrote, where the line's form does not tell them
};
struct Output {
  std::vector<OutputText> lines;
};
/// Something the user should know, in one line.
struct Remark {
  std::string text;
};

/// The system has sent this agent a signal. A batch system sends the coordinator the same, and one wish is one wish.
struct Signalled {
  int signal = 0;
  bool reached_ranks = false;  ///< as in SignalReceived
};

/// Which ranks were asked for something by a signal there, and how many of them do not handle it.
struct SignalAnswer {
  Generation generation;
  int signal = 0;
  int ranks = 0;
  int unheard = 0;
};

/// All data workers of this node have prepared --loader as far as their memory goes.
struct LoaderPrepared {};
/// --loader cannot be prepared there. The message does not name the node.
struct LoaderFailed {
  std::string message;
};

/// The answer to Dismissed, and the last that an agent says: it knows how the run ended for it.
struct Goodbye {};

using AgentMessage =
    std::variant<Hello, Ready, Refused, AddressesReached, Heartbeat, Output, Remark, Signalled, SignalAnswer,
                 RankSpawned, RankSpawnFailed, StoreReached, RankJoined, RankTrained, RankExited, GenerationGone,
                 OutputSettled, DataProgress, DataPrepared, DataWork, DataWorkerEnded, LoaderPrepared, LoaderFailed,
                 Goodbye, RankLingers, AskWriters, WritersSeen>;

/// The heartbeat of an agent whose link is silent, which comes over another connection; null: it is something else.
inline const Heartbeat* asks_aside(const AgentMessage& message) {
  const auto* heartbeat = std::get_if<Heartbeat>(&message);
  return heartbeat != nullptr && !heartbeat->instance.empty() ? heartbeat : nullptr;
}
/// Whether it is of interest when the run is over: the agent has to know how, or has said that it does.
inline bool counts_after_the_end(const AgentMessage& message) {
  return std::holds_alternative<Hello>(message) || std::holds_alternative<Goodbye>(message) ||
         asks_aside(message) != nullptr;
}

// Coordinator to agent.

/// The agent is part of the run: it prepares itself and answers Ready or Refused.
struct Welcome {
  std::string run;  ///< the launch as JSON (plan/options/launch_settings.hpp): options, environment, folder
};
/// This agent is not wanted: a wrong version, no place left, the run is over. Answered with Goodbye.
struct Dismissed {
  std::string reason;
  int exit_code = 0;
};
/// Try to connect to each, and answer AddressesReached.
struct ProbeAddresses {
  std::vector<std::string> addresses;
  std::uint16_t port = 0;
  int probe = 0;  ///< its number; a later one replaces an earlier one
};
/// What a node does with what ranks write to the output folder. Of nodes that see the same folder by the same kernel
/// one does it for all.
struct OutputDuty {
  bool publishes = false;
  std::string folder = {};  ///< where published files lie, relative to the run's folder
  bool delivers =
      false;          ///< then sends them to the coordinator, which sees another folder (run/messages/file_frames.hpp)
  bool asks = false;  ///< other agents' ranks write there, too, as the same kernel tells (AskWriters)
  bool alone = true;  ///< no other kernel's ranks write there
};
/// Start these ranks with an empty store; nothing of a former generation may live. Answered as StartGeneration is.
struct StartRanks {
  Generation generation;
  int world_size = 0;
  int nodes = 1;
  std::vector<NodeShare> shares;  ///< more than one only for an agent that plays several nodes
  std::string master_addr;
  std::uint16_t master_port = 0;
  std::vector<std::string> servers = {};  ///< "host:port" by rank, where nodes hold ports for them
  OutputDuty output = {};
  Generation folded{-1};  ///< as StartGeneration
};
/// The answer to Heartbeat.
struct HeartbeatEcho {
  std::uint64_t number = 0;
  Instant sent;      ///< as in the heartbeat
  Instant received;  ///< the coordinator's clock
};
/// The answer to each Output, in their order, once the console has taken it: a console that falls behind makes output
/// wait at its source.
struct OutputShown {};
/// The run goes to its end: publish what ranks wrote (`publish`), or name what is left over, and deliver what is
/// published and not delivered yet. Answered with OutputSettled.
struct Settle {
  bool publish = false;
};
/// The generation failed and another one begins: files whose writer died stay unpublished.
struct Abandon {};
/// Answered with WritersSeen.
struct LookAtWriters {
  Generation generation;
  std::uint64_t number = 0;
};
/// To AskWriters of this number.
struct WritersAnswer {
  std::uint64_t number = 0;
  bool well = false;
};
/// So many bytes of a file that the agent sends are written; 0: they may come now.
struct FileProgress {
  std::uint64_t transfer = 0;
  std::uint64_t received = 0;
};
/// The file is on disk under its name, or why it never will be.
struct FileStored {
  std::uint64_t transfer = 0;
  std::string error;
};

/// A data worker as others find it.
struct DataWorker {
  std::string name;  ///< for people: "data worker 3 (host b)"
  std::string node;  ///< Hello::instance of the agent there
  std::vector<std::string>
      addresses;  ///< numeric; which of them answers is for each node to find out. None: it is gone
  std::uint16_t port = 0;
};
/// All of them; a worker keeps its place for good. Data nodes start theirs when they find them here.
struct DataWorkers {
  std::vector<DataWorker> workers;
};

using CoordinatorMessage = std::variant<Welcome, Dismissed, ProbeAddresses, StartRanks, SignalRanks, KillGeneration,
                                        SweepGeneration, HeartbeatEcho, OutputShown, RequestStop, Settle, Abandon,
                                        DataWorkers, FileProgress, FileStored, LookAtWriters, WritersAnswer>;

// clang-format off
BOOST_DESCRIBE_ENUM(AgentRole, kRanks, kData)
BOOST_DESCRIBE_STRUCT(Hello, (), (protocol, version, hostname, instance, order, plays, gpus, cores, addresses, role, ranks))
BOOST_DESCRIBE_STRUCT(Ready, (), (store_port, data_ports, rank_ports, folder, view))
BOOST_DESCRIBE_STRUCT(AskWriters, (), (generation, number))
BOOST_DESCRIBE_STRUCT(WritersSeen, (), (number, well))
BOOST_DESCRIBE_STRUCT(Refused, (), (message))
BOOST_DESCRIBE_STRUCT(AddressesReached, (), (addresses, probe))
BOOST_DESCRIBE_STRUCT(Heartbeat, (), (number, sent, instance))
BOOST_DESCRIBE_STRUCT(OutputText, (), (rank, is_stderr, progress, text, at, open, raw))
BOOST_DESCRIBE_STRUCT(Output, (), (lines))
BOOST_DESCRIBE_STRUCT(Remark, (), (text))
BOOST_DESCRIBE_STRUCT(Signalled, (), (signal, reached_ranks))
BOOST_DESCRIBE_STRUCT(SignalAnswer, (), (generation, signal, ranks, unheard))
BOOST_DESCRIBE_STRUCT(Welcome, (), (run))
BOOST_DESCRIBE_STRUCT(Dismissed, (), (reason, exit_code))
BOOST_DESCRIBE_STRUCT(ProbeAddresses, (), (addresses, port, probe))
BOOST_DESCRIBE_STRUCT(OutputDuty, (), (publishes, folder, delivers, asks, alone))
BOOST_DESCRIBE_STRUCT(StartRanks, (), (generation, world_size, nodes, shares, master_addr, master_port, servers, output, folded))
BOOST_DESCRIBE_STRUCT(HeartbeatEcho, (), (number, sent, received))
BOOST_DESCRIBE_STRUCT(OutputShown, (), ())
BOOST_DESCRIBE_STRUCT(Settle, (), (publish))
BOOST_DESCRIBE_STRUCT(Abandon, (), ())
BOOST_DESCRIBE_STRUCT(LookAtWriters, (), (generation, number))
BOOST_DESCRIBE_STRUCT(WritersAnswer, (), (number, well))
BOOST_DESCRIBE_STRUCT(FileProgress, (), (transfer, received))
BOOST_DESCRIBE_STRUCT(FileStored, (), (transfer, error))
BOOST_DESCRIBE_STRUCT(LoaderPrepared, (), ())
BOOST_DESCRIBE_STRUCT(LoaderFailed, (), (message))
BOOST_DESCRIBE_STRUCT(Goodbye, (), ())
BOOST_DESCRIBE_STRUCT(DataWorker, (), (name, node, addresses, port))
BOOST_DESCRIBE_STRUCT(DataWorkers, (), (workers))
// clang-format on

}  // namespace taas::run
