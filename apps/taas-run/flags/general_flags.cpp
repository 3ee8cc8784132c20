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
    {"in", 0, "NAME", "Start from this session (taas-run up), whose Python has imported torch already",
     [](auto& options, const auto& values) {
       options.session = values.back();
       return values.back().empty() ? Result<>(usage_error("the name of a session is missing")) : Result<>();
     },
     Origin::kOwn},
    {"preflight", 0, "", "Check all nodes first, as taas-run check does, and start ranks only if no error is found",
     [](auto& options, const auto& values) { return store(options.preflight, read_switch(values.back())); },
     Origin::kOwn},
    {"speed", 0, "", "After taas-run check: how fast ranks compute and reduce, in 2 s; names slow nodes and links",
     [](auto& options, const auto& values) { return store(options.check_speed, read_switch(values.back())); },
     Origin::kOwn},
    {"check-only", 0, "", "Check all nodes and start nothing: taas-run check",
     [](auto& options, const auto& values) { return store(options.check_only, read_switch(values.back())); },
     Origin::kInternal},
    {"config", 0, "FILE", "Defaults for all options, as TOML: nproc-per-node = 4", nothing, Origin::kOwn},
    {"as-agent", 0, "", "Be the agent of one node, for a coordinator that started this process",
     [](auto& options, const auto& values) { return store(options.as_agent, read_switch(values.back())); },
     Origin::kInternal},
    {"print-completion", 0, "bash|zsh|fish", "Print the completions of a shell", nothing, Origin::kTorchrunWithoutPet},
    {"print-man-page", 0, "", "Print the manual page", nothing, Origin::kInternal},
    {"print-flags-page", 0, "", "Print docs/flags.md", nothing, Origin::kInternal},
    {"print-schema", 0, "", "Print the JSON Schema of what --json and the journal write", nothing, Origin::kOwn},
    {"version", 'V', "", "Print the version", nothing, Origin::kOwn},
    {"help", 'h', "", "Print what is used most; --help all prints this", nothing, Origin::kTorchrunWithoutPet},
};

}  // namespace

FlagGroup general_flags() { return {"General", kGeneralFlags}; }

}  // namespace taas::cli
