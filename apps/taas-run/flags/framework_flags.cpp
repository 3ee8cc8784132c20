#include <algorithm>

#include "flags/setters.hpp"
#include "plan/environment/extra_variables.hpp"

namespace taas::cli {
namespace {

using Kind = Flag::Kind;
using Origin = Flag::Origin;
using plan::Framework;

Result<> store_framework(plan::Options& options, const std::string& text) {
  auto stored = store_choice(
      options.frameworks.framework, text,
      {{"torch", Framework::kTorch}, {"tf", Framework::kTensorFlow}, {"deepspeed", Framework::kDeepSpeed}});
  if (stored) return stored;
  return usage_error(stored.error().message + "; others need no flag, docs/frameworks.md has them");
}

Result<> store_variables(std::vector<std::string>& target, const Values& values) {
  for (const auto& value : values) {
    if (auto valid = plan::check_extra_variable(value); !valid) return valid.error();
  }
  target = values;
  return {};
}

constexpr Flag kFrameworkFlags[] = {
    {"framework", 0, "NAME", "tf: TF_CONFIG for each rank; deepspeed: .deepspeed_env and --local_rank (default: torch)",
     [](auto& options, const auto& values) { return store_framework(options, values.back()); }, Origin::kOwn},
    {"env", 0, "NAME=VALUE", "Variable for all ranks, on every node; may be repeated",
     [](auto& options, const auto& values) { return store_variables(options.frameworks.env, values); }, Origin::kOwn,
     Kind::kRepeatable},
    {"rank0-env", 0, "NAME=VALUE", "Variable for rank 0 alone; may be repeated",
     [](auto& options, const auto& values) { return store_variables(options.frameworks.rank0_env, values); },
     Origin::kOwn, Kind::kRepeatable},
    {"other-ranks-env", 0, "NAME=VALUE", "Variable for all ranks but 0, as WANDB_MODE=disabled; may be repeated",
     [](auto& options, const auto& values) { return store_variables(options.frameworks.other_ranks_env, values); },
     Origin::kOwn, Kind::kRepeatable},
};

}  // namespace

FlagGroup framework_flags() { return {"Frameworks", kFrameworkFlags}; }

}  // namespace taas::cli
