#include "slurm/job_gpus.hpp"

#include <chrono>

#include "plan/launch_mode/slurm.hpp"
#include "plan/sizes/slurm_gpus.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

constexpr auto kQuestionPatience = std::chrono::seconds(5);  // slurmctld may be away, and nodes are equal as a rule

}  // namespace

std::map<std::string, int> ask_for_gpus_by_node(const plan::Options& options, const plan::Machine& machine) {
  auto job = plan::read_slurm(machine.environment);
  if (!job || !*job || !plan::needs_gpus_by_node(options, **job)) return {};
  auto told = output_of({"scontrol", "show", "job", "--details", "--oneliner", (*job)->id}, kQuestionPatience,
                        Complaints::kDropped);
  return told ? plan::gpus_by_node(*told) : std::map<std::string, int>();
}

}  // namespace taas::cli
