#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/ids.hpp"
#include "run/events/flight_record.hpp"

namespace taas {

BOOST_DESCRIBE_STRUCT(ExitStatus, (), (code, signal, core_dumped))

}  // namespace taas

namespace taas::run {

using taas::ExitStatus;

/// A process that held memory of the GPU on which a rank found too little.
struct GpuHolder {
  int pid = 0;
  std::string name;         ///< of its program; empty: not known
  std::uint64_t bytes = 0;  ///< 0: the driver does not say
};

/// What is known about why a rank ended, gathered when it ended: its last words and what the kernel counted. Of one
/// that ended well there is stderr_path alone.
struct Evidence {
  std::vector<std::string> last_lines;  ///< the last lines of its stderr (of stdout when stderr is empty), oldest first
  Instant first_error_at{};             ///< when the first line of its fatal error arrived; zero: none was seen
  bool out_of_memory_kill = false;      ///< the kernel's out-of-memory killer struck in the run's memory cgroup
  std::string expired_timer = {};       ///< scope of the timer for which the rank or its descendant was signalled
  std::string error_file;               ///< content of TORCHELASTIC_ERROR_FILE, when the program wrote one
  std::string stderr_path;              ///< where the whole stderr can be read
  std::vector<CollectiveGroup> collectives;  ///< the last calls that torch's flight recorder has written down
  std::string gpu;                           ///< which was full, or has failed, as the driver counts; empty: none
  std::vector<GpuHolder> gpu_holders;        ///< of that GPU's memory, the most first
  std::string gpu_trouble = {};              ///< what the driver says is wrong with it; empty: nothing
};

// What happens: the events of the world, in the order in which they became known. `at` is when.

/// The run begins: what it runs, where and with what, for who looks for it later. Empty: not known.
struct RunStarted {
  Instant at;
  std::string command = {};  ///< as it was typed
  std::string folder = {};   ///< in which
  std::string time = {};     ///< of the wall clock, ISO 8601
  std::string host = {};     ///< that the launcher runs on, as all of the following
  std::string user = {};
  std::string taas_run = {};  ///< its version
  std::string python = {};    ///< that of the program's Python
  std::string torch = {};     ///< ... and of the torch that is installed for it
  std::string commit = {};    ///< of the git repository that the program is in
};
/// A rank's process runs its program (exec has succeeded).
struct RankSpawned {
  Generation generation;
  Rank rank;
  int pid;
  Instant at;
  bool preloaded = false;  ///< it came out of an interpreter that had imported modules already
};
/// A rank's process could not be made, or its program not executed. The agent then starts no further rank of that
/// generation and reports nothing for those it did not start: the run counts them as absent, not as waited for.
struct RankSpawnFailed {
  Generation generation;
  Rank rank;
  int system_errno;
  std::string message;
  Instant at;
};
/// A rank of the generation has talked to the store, whichever rank and whatever the backend of its process group.
struct StoreReached {
  Generation generation;
  Instant at;
};
/// A rank has joined its process group through the store.
struct RankJoined {
  Generation generation;
  Rank rank;
  Instant at;
};
/// A rank's process has ended.
struct RankExited {
  Generation generation;
  Rank rank;
  ExitStatus status;
  Evidence evidence;
  Instant at;
};
/// What a rank whose process lives seems to have come to.
enum class Lingering {
  kSilent,  ///< an exception is the last that it has printed, and it has done nothing since: what it waits for is
            ///< unknown
  kFailed,  ///< an exception has ended its main program for certain: what keeps the process is of no use to the run
  kGoesOn,  ///< it looked like the first or the second, and does not any more
};
/// A rank has raised and its process does not end, or seems so.
struct RankLingers {
  Generation generation;
  Rank rank;
  Lingering state = Lingering::kSilent;
  std::string waits_for;  ///< "thread \"writer\""; empty: not known
  Evidence evidence;      ///< its last words so far
  Instant at;
};
/// No process of the generation is left, grandchildren in other sessions included.
struct GenerationGone {
  Generation generation;
  Instant at;
};
/// The launcher was sent a signal.
struct SignalReceived {
  int signal;
  Instant at;
  bool reached_ranks = false;  ///< a batch system has sent it to every process of the job, ranks too
};
/// The instant of the last SetDeadline has come.
struct DeadlineReached {
  Instant at;
};
/// Everything written through the output folder is on disk under its final name, or could not be (error not empty).
struct OutputSettled {
  std::string error;
  Instant at;
  int files = 0;  ///< how many are published
};

/// The nodes of the next generation are chosen. They may be others, and fewer, than before.
struct NodesGathered {
  int world_size = 0;
  std::vector<NodeIndex> node_of_rank;
  std::vector<std::string> node_names;  ///< by node; empty: they have none
  Instant at;
};
/// There will not be enough nodes.
struct GatherFailed {
  std::string summary;
  std::string hint;  ///< may be empty
  int exit_code = 1;
  Instant at;
};
/// A node is not part of the run any more: those of its ranks that had not ended count as lost. GenerationGone follows
/// only when they are certain to be dead.
struct NodeLost {
  Generation generation;
  NodeIndex node;
  std::string name;    ///< of the machine; may be empty
  std::string reason;  ///< "no sign of life for 2.5 s"
  Instant last_sign_of_life;
  bool replaceable = false;  ///< another node can take its place, or the run goes on without it: costs no restart
  Instant at;
};
/// A node was told to stop, as one that is evicted, and the run can go on without it: its ranks may end like all
/// others.
struct NodeLeaves {
  Generation generation;
  NodeIndex node;
  std::string name;  ///< of the machine; may be empty
  int signal = 0;    ///< that its agent was told with
  Instant at;
};
/// The links of these nodes have carried nothing for some seconds. Nothing is done about it until they count as lost.
struct NodesSilent {
  std::vector<NodeIndex> nodes;    ///< -1: one that stands by
  std::vector<std::string> names;  ///< of their machines
  Instant last_heard;              ///< the one that has been silent for longest, over its link
  Duration lost_after;             ///< such a silence
  Instant at;
};
/// They have been heard again.
struct NodesAnswer {
  std::vector<NodeIndex> nodes;  ///< this and the next as in NodesSilent
  std::vector<std::string> names;
  Duration silence;  ///< the longest
  Instant at;
};

using Event = std::variant<RunStarted, RankSpawned, RankSpawnFailed, StoreReached, RankJoined, RankExited,
                           GenerationGone, SignalReceived, DeadlineReached, OutputSettled, NodesGathered, GatherFailed,
                           NodeLost, NodeLeaves, RankLingers, NodesSilent, NodesAnswer>;

inline Instant instant_of(const Event& event) {
  return std::visit([](const auto& happened) { return happened.at; }, event);
}

/// Why the run, or a generation of it, ended as it did.
enum class Cause {
  kSuccess,
  kExitCode,      ///< a rank returned non-zero
  kException,     ///< a rank's Python program raised
  kSignal,        ///< a rank was killed by a signal
  kOutOfMemory,   ///< a rank was killed by the kernel's out-of-memory killer
  kExecFailed,    ///< a rank's program could not be executed
  kHang,          ///< ranks waited in a collective for one that did not come
  kStoreTimeout,  ///< ranks waited for others that never joined
  kStopped,       ///< the launcher was told to stop
  kOutputFailed,  ///< training ended well but its output could not be put on disk
  kNodeLost,      ///< a node went away or was cut off; the launcher returns 1, as torchrun does
  kNodesMissing,  ///< there were never, or no more, enough nodes
};

/// The judgement over one generation: what failed first, where and why, told apart from what only followed.
struct Verdict {
  Cause cause = Cause::kSuccess;
  Rank culprit{-1};    ///< -1: no rank is to blame
  NodeIndex node{-1};  ///< of the culprit, or the lost one; -1: none is to blame
  Generation generation;
  ExitStatus status;                ///< of the culprit
  std::string summary;              ///< one line: "rank 3 exited with code 42"
  std::vector<std::string> detail;  ///< traceback or last lines of the culprit, trimmed for the report
  std::vector<Rank> consequences;   ///< failed after and because of the culprit
  std::vector<Rank> stopped;        ///< stopped by the launcher
  std::string hint;                 ///< what to do next; may be empty
  std::string log_path;             ///< the culprit's stderr file; without a culprit the folder of all, with its slash
  std::string error_file;           ///< what the culprit wrote into its own; neither in the journal nor on the wire
  std::string raised;               ///< its exception, and the line that raised it; neither there
  int exit_code = 0;                ///< what the launcher returns
  Instant at{};                     ///< of the first failure
};

// What to do about it: the machine's decisions, carried out by the agent in this order.

/// Find the nodes of this generation. NodesGathered or GatherFailed must follow.
struct GatherNodes {
  Generation generation;
};
/// Start all ranks, in order, with a fresh store. RankSpawned must follow for each, until the first RankSpawnFailed.
struct StartGeneration {
  Generation generation;
  Generation folded{-1};  ///< its log files go: it failed like those before and after it; -1: none do
};
/// Tell these ranks by a signal: each program in their process groups once.
struct SignalRanks {
  Generation generation;
  std::vector<Rank> ranks;
  int signal;
  bool to_end = true;  ///< else ranks go on, and those that do not handle the signal do not get it
  bool sent = false;   ///< a batch system has sent it to all of their processes: they are not told again
};
/// SIGKILL every process of the generation, grandchildren in other sessions included. GenerationGone must follow.
struct KillGeneration {
  Generation generation;
};
/// Ask whether processes of the generation remain now that its ranks have ended: those that have not been told to end
/// yet are told by `signal` (0: none is, they may finish what they do); GenerationGone follows when none is left.
struct SweepGeneration {
  Generation generation;
  int signal;
};
/// Deliver DeadlineReached at this instant; replaces the former deadline.
struct SetDeadline {
  Instant at;
};
struct ClearDeadline {};
/// Tell ranks to write a checkpoint: by a file, and by this signal those that handle it (0: by none).
struct RequestStop {
  int signal = 0;
  bool sent = false;  ///< as in SignalRanks
};
/// Publish what ranks wrote through the output folder, or name what is left over; OutputSettled must follow.
struct SettleOutput {
  bool publish = false;  ///< all ranks have ended well
};
/// Tell the user one line.
struct Notify {
  std::string text;
};
/// Tell the user that a generation failed (and, with `restarting`, that the next one begins).
struct ReportFailure {
  Verdict verdict;
  bool restarting = false;
  int restart = 0;   ///< the number of the next one, of those that --max-restarts allows; 0: it costs none
  Duration pause{};  ///< before the next one
  int alike = 0;     ///< how many generations in a row had failed in the same way before
};
/// The run is over.
struct Finish {
  Verdict verdict;
};

using Action = std::variant<GatherNodes, StartGeneration, SignalRanks, KillGeneration, SweepGeneration, RequestStop,
                            SetDeadline, ClearDeadline, SettleOutput, Notify, ReportFailure, Finish>;

// One description of each struct serves the journal and the wire: a member that is not named here is in neither.
// clang-format off
BOOST_DESCRIBE_STRUCT(GpuHolder, (), (pid, name, bytes))
BOOST_DESCRIBE_STRUCT(Evidence, (), (last_lines, first_error_at, out_of_memory_kill, expired_timer, error_file, stderr_path, collectives, gpu,
                                     gpu_holders, gpu_trouble))
BOOST_DESCRIBE_STRUCT(RunStarted, (), (at, command, folder, time, host, user, taas_run, python, torch, commit))
BOOST_DESCRIBE_STRUCT(RankSpawned, (), (generation, rank, pid, at, preloaded))
BOOST_DESCRIBE_STRUCT(RankSpawnFailed, (), (generation, rank, system_errno, message, at))
BOOST_DESCRIBE_STRUCT(StoreReached, (), (generation, at))
BOOST_DESCRIBE_STRUCT(RankJoined, (), (generation, rank, at))
BOOST_DESCRIBE_STRUCT(RankExited, (), (generation, rank, status, evidence, at))
BOOST_DESCRIBE_ENUM(Lingering, kSilent, kFailed, kGoesOn)
BOOST_DESCRIBE_STRUCT(RankLingers, (), (generation, rank, state, waits_for, evidence, at))
BOOST_DESCRIBE_STRUCT(GenerationGone, (), (generation, at))
BOOST_DESCRIBE_STRUCT(SignalReceived, (), (signal, at, reached_ranks))
BOOST_DESCRIBE_STRUCT(DeadlineReached, (), (at))
BOOST_DESCRIBE_STRUCT(OutputSettled, (), (error, at, files))

BOOST_DESCRIBE_STRUCT(NodesGathered, (), (world_size, node_of_rank, node_names, at))
BOOST_DESCRIBE_STRUCT(GatherFailed, (), (summary, hint, exit_code, at))
BOOST_DESCRIBE_STRUCT(NodeLeaves, (), (generation, node, name, signal, at))
BOOST_DESCRIBE_STRUCT(NodesSilent, (), (nodes, names, last_heard, lost_after, at))
BOOST_DESCRIBE_STRUCT(NodesAnswer, (), (nodes, names, silence, at))
BOOST_DESCRIBE_STRUCT(NodeLost, (), (generation, node, name, reason, last_sign_of_life, replaceable, at))

BOOST_DESCRIBE_ENUM(Cause, kSuccess, kExitCode, kException, kSignal, kOutOfMemory, kExecFailed, kHang, kStoreTimeout, kStopped,
                    kOutputFailed, kNodeLost, kNodesMissing)
BOOST_DESCRIBE_STRUCT(Verdict, (), (cause, culprit, node, generation, status, summary, detail, consequences, stopped, hint,
                                    log_path, exit_code, at))

BOOST_DESCRIBE_STRUCT(GatherNodes, (), (generation))
BOOST_DESCRIBE_STRUCT(StartGeneration, (), (generation, folded))
BOOST_DESCRIBE_STRUCT(SignalRanks, (), (generation, ranks, signal, to_end, sent))
BOOST_DESCRIBE_STRUCT(KillGeneration, (), (generation))
BOOST_DESCRIBE_STRUCT(SweepGeneration, (), (generation, signal))
BOOST_DESCRIBE_STRUCT(SetDeadline, (), (at))
BOOST_DESCRIBE_STRUCT(ClearDeadline, (), ())
BOOST_DESCRIBE_STRUCT(RequestStop, (), (signal, sent))
BOOST_DESCRIBE_STRUCT(SettleOutput, (), (publish))
BOOST_DESCRIBE_STRUCT(Notify, (), (text))
BOOST_DESCRIBE_STRUCT(ReportFailure, (), (verdict, restarting, restart, pause, alike))
BOOST_DESCRIBE_STRUCT(Finish, (), (verdict))
// clang-format on

}  // namespace taas::run
