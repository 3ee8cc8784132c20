#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace taas::run {

/// Of what a run's ranks find at its start, as far as files tell it without importing anything.
struct RunVersions {
  std::string taas_run;
  std::string python;  ///< "3.11.2"; empty, as those below: not known, or there is none
  std::string torch;   ///< "2.15.0+cu132"
  std::string cuda;    ///< that torch was built with, "13.2"
  std::string nccl;    ///< of the package that torch brings, "2.27.5"
};

/// The git repository that the run was started in.
struct RunSource {
  std::string commit;  ///< 40 or 64 hexadecimal digits; empty: there is none
  std::string branch;  ///< empty: none is checked out
};

/// The batch job that it was started in.
struct RunJob {
  std::string id;          ///< of SLURM; empty: none
  std::string array_job;   ///< "26792918"
  std::string array_task;  ///< "2"
};

/// What a run is: enough to find it again, to repeat it and to compare it with another one. The first line of its
/// journal has it.
struct RunRecord {
  int number = 0;                    ///< among the runs of its output folder, from 1 on; 0: it has none
  std::string run;                   ///< its folder's name
  std::string name;                  ///< --name
  std::string started;               ///< by the clock on the wall: "2026-11-27T03:17:05.123Z"
  std::vector<std::string> command;  ///< as it was typed, with taas-run itself
  std::string folder;                ///< in which
  std::string log_dir;  ///< its own folder below --log-dir, absolute; empty: its log files are in the run's
  std::string host;
  std::string user;
  int ranks = 0;  ///< as planned, as the nodes are
  int nodes = 0;
  RunVersions versions;
  RunSource source;
  RunJob job;
  std::vector<std::string> environment;  ///< "NAME=value" of what changes how training runs, and of no secret
};

/// How far the files of the repository were from its commit, a moment after the start.
struct SourceSeen {
  int changes = 0;  ///< files that differ, those that git does not know left out
  Instant at;
};

// clang-format off
BOOST_DESCRIBE_STRUCT(SourceSeen, (), (changes, at))
BOOST_DESCRIBE_STRUCT(RunVersions, (), (taas_run, python, torch, cuda, nccl))
BOOST_DESCRIBE_STRUCT(RunSource, (), (commit, branch))
BOOST_DESCRIBE_STRUCT(RunJob, (), (id, array_job, array_task))
BOOST_DESCRIBE_STRUCT(RunRecord, (), (number, run, name, started, command, folder, log_dir, host, user, ranks, nodes, versions, source, job, environment))
// clang-format on

}  // namespace taas::run
