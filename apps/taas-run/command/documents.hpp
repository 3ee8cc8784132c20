#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/check/findings.hpp"
#include "run/looks/look_report.hpp"
#include "ui/view/runs_page.hpp"

namespace taas::cli {

// What --json prints, besides the lines of a run: one struct for each document, which is written by
// published_document() and described by docs/schema.json. `taas-run look` and `top` print a run::LookReport, `check` a
// run::CheckReport.

/// Why something could not begin as it was asked for. A program can tell what to do by the code; docs/for-programs.md
/// has all of them.
enum class ErrorKind { kUsage, kSystem, kProtocol, kUnavailable, kNotExecutable, kNotFound };
struct ErrorText {
  ErrorKind code = ErrorKind::kSystem;
  std::string message;  ///< what is wrong
  std::string fix;      ///< what to do about it; never empty
};
struct ErrorDocument {
  ErrorText error;
  int exit_code = 0;
};

struct RunsDocument {
  std::vector<ui::RunSummary> runs;  ///< the newest first
};

struct Happening {
  double t = 0;
  std::string text;
};
struct ShowDocument {
  ui::RunSummary run;
  std::vector<Happening> timeline;
};

/// The first line of `taas-run logs --json`. A line for each line that the rank wrote follows.
struct LogsDocument {
  std::string run;
  std::string folder;
  int rank = 0;
};
struct LoggedLine {
  int generation = 0;
  int rank = 0;
  std::string stream;  ///< "stdout", "stderr"
  std::string text;
  bool open = false;  ///< its end has not been written: the next line of this stream goes on with it
};

/// It was told to stop, and may take a while to.
struct StopDocument {
  std::string run;
};

struct RerunDocument {
  std::string folder;
  std::vector<std::string> command;
  std::map<std::string, std::string> variables;  ///< that are otherwise now
};

struct DiffDocument {
  std::vector<std::string> runs;                                           ///< the two
  std::map<std::string, std::pair<std::string, std::string>> differences;  ///< "$NAME" is a variable
};

struct CleanedRun {
  std::string run;
  std::string folder;
  std::uint64_t bytes = 0;
};
struct CleanDocument {
  bool dry_run = false;             ///< nothing was removed
  std::vector<CleanedRun> removed;  ///< or would be
  std::vector<std::string> failed;  ///< folders that could not be removed
  std::uint64_t with_files = 0;     ///< runs that stay for the files of their ranks (--files)
  std::uint64_t unpublished = 0;    ///< runs that stay for files that were not published
};

struct Device {
  std::string device;  ///< "cpu", "cuda:0", as torch names it
  std::string name;
  std::int64_t free_bytes = -1;   ///< negative: not known
  std::int64_t total_bytes = -1;  ///< likewise
  std::string tensor;             ///< "works", "not tried", or what went wrong
};
struct DevicesDocument {
  bool ok = true;  ///< a tensor could be made on each, or there is no torch to try it with
  std::vector<Device> devices;
  std::string no_gpu;  ///< why there is none, where there is none
  std::string torch;   ///< with which it was tried, or why it was not
};

struct TokenDocument {
  std::string token;
};

struct PlannedNode {
  int node = 0;
  std::string hostname;
  bool simulated = false;
  int first_rank = 0;
  int local_world_size = 0;
};
struct PlannedRank {
  int rank = 0;
  int node = 0;
  int local_rank = 0;
  std::map<std::string, std::string> environment;  ///< over the user's own
};
struct PlannedData {
  int cpus = 0;
  std::string machines;
  std::vector<std::string> hosts;
  std::int64_t units = 0;
  std::string loader;
  std::int64_t buffer_bytes = 0;
};
/// `taas-run --dry-run --json`.
struct PlanDocument {
  std::string run_id;
  std::string way;     ///< "this machine", "ssh to 3 hosts"
  std::string device;  ///< "gpu", "cpu"
  int world_size = 0;
  int gpus = 0;
  int devices_per_rank = 1;
  int cores = 0;
  int omp_threads = 0;
  int max_restarts = 0;
  std::vector<std::string> command;
  std::vector<std::string> preload;
  std::string output;
  int min_nodes = 0;
  int spares = 0;
  std::optional<PlannedData> data;
  std::vector<std::string> notices;
  std::vector<PlannedNode> nodes;
  std::vector<PlannedRank> ranks;
};

struct SessionState {
  std::string name;
  int pid = 0;
  std::string state;               ///< "importing", "ready", "refused", "ending"
  std::string why;                 ///< of "refused"
  std::vector<std::string> flags;  ///< that it was made with
  std::string python;
  std::vector<std::string> modules;  ///< imported
  std::int64_t memory_bytes = 0;     ///< of its processes; what they share with others counts in part
  int runs = 0;                      ///< under way
  std::chrono::nanoseconds idle{0};
  std::chrono::milliseconds idle_limit{0};  ///< 0: none
};
/// `taas-run sessions`, and `taas-run up` of the one.
struct SessionsDocument {
  std::vector<SessionState> sessions;
};
struct DownDocument {
  std::vector<std::string> ended;
};

// clang-format off
BOOST_DESCRIBE_STRUCT(SessionState, (), (name, pid, state, why, flags, python, modules, memory_bytes, runs, idle, idle_limit))
BOOST_DESCRIBE_STRUCT(SessionsDocument, (), (sessions))
BOOST_DESCRIBE_STRUCT(DownDocument, (), (ended))
BOOST_DESCRIBE_ENUM(ErrorKind, kUsage, kSystem, kProtocol, kUnavailable, kNotExecutable, kNotFound)
BOOST_DESCRIBE_STRUCT(ErrorText, (), (code, message, fix))
BOOST_DESCRIBE_STRUCT(ErrorDocument, (), (error, exit_code))
BOOST_DESCRIBE_STRUCT(RunsDocument, (), (runs))
BOOST_DESCRIBE_STRUCT(Happening, (), (t, text))
BOOST_DESCRIBE_STRUCT(ShowDocument, (), (run, timeline))
BOOST_DESCRIBE_STRUCT(LogsDocument, (), (run, folder, rank))
BOOST_DESCRIBE_STRUCT(LoggedLine, (), (generation, rank, stream, text, open))
BOOST_DESCRIBE_STRUCT(StopDocument, (), (run))
BOOST_DESCRIBE_STRUCT(RerunDocument, (), (folder, command, variables))
BOOST_DESCRIBE_STRUCT(DiffDocument, (), (runs, differences))
BOOST_DESCRIBE_STRUCT(CleanedRun, (), (run, folder, bytes))
BOOST_DESCRIBE_STRUCT(CleanDocument, (), (dry_run, removed, failed, with_files, unpublished))
BOOST_DESCRIBE_STRUCT(Device, (), (device, name, free_bytes, total_bytes, tensor))
BOOST_DESCRIBE_STRUCT(DevicesDocument, (), (ok, devices, no_gpu, torch))
BOOST_DESCRIBE_STRUCT(TokenDocument, (), (token))
BOOST_DESCRIBE_STRUCT(PlannedNode, (), (node, hostname, simulated, first_rank, local_world_size))
BOOST_DESCRIBE_STRUCT(PlannedRank, (), (rank, node, local_rank, environment))
BOOST_DESCRIBE_STRUCT(PlannedData, (), (cpus, machines, hosts, units, loader, buffer_bytes))
BOOST_DESCRIBE_STRUCT(PlanDocument, (), (run_id, way, device, world_size, gpus, devices_per_rank, cores, omp_threads, max_restarts,
                                         command, preload, output, min_nodes, spares, data, notices, nodes, ranks))
// clang-format on

}  // namespace taas::cli
