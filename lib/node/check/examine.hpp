#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/error.hpp"
#include "plan/options/launch_settings.hpp"
#include "plan/program/program.hpp"
#include "run/check/node_facts.hpp"

namespace taas::node {

/// The flag by which this program looks at its machine: an ExamineWish comes by standard input, NodeFacts go to
/// standard output, both as JSON.
inline constexpr const char* kExamineFlag = "--examine-node";

/// What to look at on a node.
struct ExamineWish {
  std::string program;          ///< as the user wrote it; empty: there is none
  std::string program_problem;  ///< why it cannot be run here
  std::string interpreter;      ///< of a Python program; empty: it is none
  Environment environment;      ///< what ranks get beside that of this process
  std::string output;           ///< the folder of --output, absolute
  std::vector<std::string> refusals;
  int ranks = 0;
  int gpus = 0;  ///< that are visible here
  std::string gpu_problem;
  std::int64_t open_files = -1;  ///< the soft limit of ranks, where this process has another one
};

BOOST_DESCRIBE_STRUCT(ExamineWish, (),
                      (program, program_problem, interpreter, environment, output, refusals, ranks, gpus, gpu_problem,
                       open_files))

/// What to look at where these settings ask for this program and so many ranks. `program` is what came of looking for
/// it.
ExamineWish examine_wish(const plan::LaunchSettings& settings, const plan::Machine& machine,
                         const Result<plan::ResolvedProgram>& program, int ranks);

/// Looks at this machine as a rank would find it; `environment` is this process's. Disks, drivers and name servers may
/// hold it up: it is for a process that somebody else can end.
run::NodeFacts examine(const ExamineWish& wish, Environment environment);

/// The same by a child with this process's environment. This process waits for it, and is left without the threads of
/// looks that hang: after one, it may still fork.
run::NodeFacts examine_by_child(const ExamineWish& wish);

/// What such a child said; no facts where that is not all of it.
run::NodeFacts facts_of(const std::string& said);

/// A refusal that says why.
run::NodeFacts no_facts(const std::string& reason);

}  // namespace taas::node
