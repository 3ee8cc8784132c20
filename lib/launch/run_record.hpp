#pragma once

#include <string>

#include "plan/launch_plan.hpp"
#include "run/events/run_record.hpp"

namespace taas::launch {

/// What there is to know of a run at its start, but for its number and its folder. Only files are read, and few: a
/// start is to cost nothing for it.
run::RunRecord describe_run(const plan::LaunchPlan& plan, const plan::Machine& machine);

/// The repository that a folder is in, by its files.
run::RunSource find_source(const std::string& folder);

/// Python's and torch's beside an interpreter: in its environment, or its prefix.
run::RunVersions find_versions(const std::string& interpreter);

/// Whether a variable may change how training runs, and is neither a secret nor the user's own affair.
bool is_worth_keeping(const std::string& variable);

/// Files of the repository that differ from its commit (git status): how many; -1: git did not say. Takes git's time.
int count_changes(const std::string& folder);

}  // namespace taas::launch
