#pragma once

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

/// What the launcher of DeepSpeed does for its programs, with --framework deepspeed: sets the variables of
/// ~/.deepspeed_env and ./.deepspeed_env (DS_ENV_FILE names another) over the environment of all ranks, and puts
/// --local_rank in front of the program's arguments.
Result<> follow_deepspeed(plan::Options& options, plan::Machine& machine);

}  // namespace taas::cli
