#pragma once

#include <optional>
#include <string>

#include "plan/options/options.hpp"
#include "proc/spawn/landlock.hpp"
#include "storage/run_directory.hpp"

namespace taas::node {

/// The rules for ranks other than 0 and data workers, by --protect and --rank-output none; none: they may write
/// anywhere. They allow what is there when they are made.
Result<std::optional<Ruleset>> make_protection(const plan::OutputOptions& output, const storage::RunDirectory& folder);

/// Whether such rules can be made, as far as that shows before there is a folder of the run.
Result<> check_protection(const plan::OutputOptions& output);

/// Which flag makes what read-only.
std::string describe_protection(const plan::OutputOptions& output);

}  // namespace taas::node
