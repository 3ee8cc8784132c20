#include "flags/setters.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;

/// For flags that parse() itself reads.
Result<> nothing(plan::Options&, const Values&) { return {}; }

constexpr Flag kGeneralFlags[] = {
    {"dry-run", 0, "", "Print the plan (nodes, ranks, environment, command) and start nothing",
     [](auto& options, const auto& values) { return store(options.dry_run, read_switch(values.back())); },
     Origin::kOwn},
    {"config", 0, "FILE", "Defaults for all options, as TOML: nproc-per-node = 4", nothing, Origin::kOwn},
    {"as-agent", 0, "", "Be the agent of one node, for a coordinator that started this process",
     [](auto& options, const auto& values) { return store(options.as_agent, read_switch(values.back())); },
     Origin::kInternal},
    {"print-completion", 0, "bash|zsh|fish", "Print the completions of a shell", nothing, Origin::kTorchrunWithoutPet},
    {"print-man-page", 0, "", "Print the manual page", nothing, Origin::kInternal},
    {"print-flags-page", 0, "", "Print docs/flags.md", nothing, Origin::kInternal},
    {"version", 'V', "", "Print the version", nothing, Origin::kOwn},
    {"help", 'h', "", "Print this", nothing, Origin::kTorchrunWithoutPet},
};

}  // namespace

FlagGroup general_flags() { return {"General", kGeneralFlags}; }

}  // namespace taas::cli
