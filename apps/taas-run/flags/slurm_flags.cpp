#include "base/environment/environment.hpp"
#include "flags/setters.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;

/// What SLURM's commands take as --KEY=VALUE.
Result<> check_slurm_options(const Values& values) {
  for (const auto& value : values) {
    if (!split_assignment(value) || value.front() == '-') return usage_error("not KEY=VALUE, such as qos=high");
  }
  return {};
}

constexpr Flag kSlurmFlags[] = {
    {"slurm", 0, "", "Outside of a job: submit this run as one, and show its output",
     [](auto& options, const auto& values) { return store(options.slurm.submit, read_switch(values.back())); },
     Origin::kOwn},
    {"detach", 0, "", "With --slurm: print the job's id and leave",
     [](auto& options, const auto& values) { return store(options.slurm.detach, read_switch(values.back())); },
     Origin::kOwn},
    {"partition", 0, "NAME", "With --slurm: as for sbatch",
     [](auto& options, const auto& values) { return store_filled(options.slurm.partition, values.back()); },
     Origin::kOwn},
    {"data-partition", 0, "NAME", "With --slurm and --cpus: partition of the CPU machines (default: the same)",
     [](auto& options, const auto& values) { return store_filled(options.slurm.data_partition, values.back()); },
     Origin::kOwn},
    {"slurm-staged", 0, "", "With --slurm, --cpus and --loader: allocate the GPUs when the loaders are prepared",
     [](auto& options, const auto& values) { return store(options.slurm.staged, read_switch(values.back())); },
     Origin::kOwn},
    {"data-time", 0, "TIME", "With --slurm-staged: time limit of the CPU machines (default: their partition's)",
     [](auto& options, const auto& values) { return store_filled(options.slurm.data_time, values.back()); },
     Origin::kOwn},
    {"held-job", 0, "ID", "Of a staged submission: the job of the GPU nodes, which this process prepares for",
     [](auto& options, const auto& values) { return store_filled(options.slurm.held_job, values.back()); },
     Origin::kInternal},
    {"as-staged-node", 0, "ranks|data", "Be the agent of a node in one of the jobs of a staged submission",
     [](auto& options, const auto& values) -> Result<> {
       options.slurm.staged_node = values.back();
       return {};
     },
     Origin::kInternal},
    {"account", 0, "NAME", "With --slurm: as for sbatch",
     [](auto& options, const auto& values) { return store_filled(options.slurm.account, values.back()); },
     Origin::kOwn},
    {"time", 0, "TIME", "With --slurm: as for sbatch",
     [](auto& options, const auto& values) { return store_filled(options.slurm.time, values.back()); }, Origin::kOwn},
    {"gres", 0, "LIST", "With --slurm: as for sbatch, in place of --gpus-per-node",
     [](auto& options, const auto& values) { return store_filled(options.slurm.gres, values.back()); }, Origin::kOwn},
    {"slurm-option", 0, "KEY=VALUE", "With --slurm: any other option of sbatch, without dashes; may be repeated",
     [](auto& options, const auto& values) -> Result<> {
       if (auto valid = check_slurm_options(values); !valid) return valid.error();
       options.slurm.options = values;
       return {};
     },
     Origin::kOwn, Flag::Kind::kRepeatable},
    {"preempt-signal", 0, "NAME", "Signal by which a job learns that it ends soon (default: USR2)",
     [](auto& options, const auto& values) { return store(options.slurm.preempt_signal, read_signal(values.back())); },
     Origin::kOwn},
    {"requeue", 0, "", "Put the job back into the queue when it was told to end before its work was done",
     [](auto& options, const auto& values) { return store(options.slurm.requeue, read_switch(values.back())); },
     Origin::kOwn},
};

}  // namespace

FlagGroup slurm_flags() { return {"SLURM", kSlurmFlags}; }

}  // namespace taas::cli
