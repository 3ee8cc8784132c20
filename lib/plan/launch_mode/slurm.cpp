#include "plan/launch_mode/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "plan/launch_mode/slurm_variables.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

constexpr std::int64_t kMostGroups = 1024;
constexpr int kMostGpus = 65536;
// Steps that are no step of the user's: SLURM's ids of the interactive, batch and extern steps.
constexpr std::int64_t kFirstSpecialStep = 4294967290;

/// Entries of CUDA_VISIBLE_DEVICES, where SLURM does not say the number itself.
int count_devices(const SlurmVariables& reader) {
  auto devices = reader.text("CUDA_VISIBLE_DEVICES");
  if (!devices || *devices == "NoDevFiles" || *devices == "-1") return 0;
  return static_cast<int>(split(*devices, ',').size());
}

/// "8", "a100:8" or "a100:4,v100:4".
Result<int> add_up_gpus(const char* variable, const std::string& text) {
  int total = 0;
  for (auto part : split(text, ',')) {
    auto number = parse_integer(part.substr(part.rfind(':') + 1));
    if (!number || *number < 0 || *number > kMostGpus) {
      return usage_error(fmt::format("{}={}: not a number of GPUs", variable, text));
    }
    total = std::min(total + *number, kMostGpus);
  }
  return total;
}

constexpr std::initializer_list<const char*> kGpusByNode{"SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_NODE_HET_GROUP_0",
                                                         "SLURM_GPUS_PER_NODE_PACK_GROUP_0"};

bool are_gpus_even(const SlurmVariables& reader) {
  return std::any_of(kGpusByNode.begin(), kGpusByNode.end(),
                     [&](const char* variable) { return reader.text(variable).has_value(); });
}

/// A node of the job knows what it has; the shell of salloc may be elsewhere, and only knows what was asked for.
Result<int> read_gpus(const SlurmVariables& reader) {
  std::initializer_list<const char*> on_node{"SLURM_GPUS_ON_NODE"};
  bool here = reader.text("SLURMD_NODENAME").has_value();
  for (const char* variable : here ? on_node : kGpusByNode) {
    if (auto value = reader.text(variable)) return add_up_gpus(variable, *value);
  }
  return here ? count_devices(reader) : 0;
}

/// Components of a heterogeneous job; older releases call them packs.
Result<std::vector<SlurmGroup>> read_groups(const SlurmVariables& reader) {
  auto size = reader.number(reader.text("SLURM_HET_SIZE") ? "SLURM_HET_SIZE" : "SLURM_PACK_SIZE", 0);
  if (!size) return size.error();
  if (*size > kMostGroups) return usage_error(fmt::format("SLURM_HET_SIZE={}: too many groups", *size));
  std::vector<SlurmGroup> groups;
  for (std::int64_t k = 0; k < *size; ++k) {
    auto variable = fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", k);
    if (!reader.text(variable)) variable = fmt::format("SLURM_JOB_NODELIST_PACK_GROUP_{}", k);
    auto nodes = reader.nodes(variable);
    if (!nodes) return nodes.error();
    auto id = reader.text(fmt::format("SLURM_JOB_ID_HET_GROUP_{}", k), fmt::format("SLURM_JOB_ID_PACK_GROUP_{}", k));
    groups.push_back({id.value_or(""), std::move(*nodes)});
  }
  return groups;
}

/// A step over several groups lists its nodes by name, and numbers them group by group.
std::vector<std::string> in_order_of(const std::vector<SlurmGroup>& groups, std::vector<std::string> nodes) {
  std::vector<std::string> ordered;
  std::set<std::string> wanted(nodes.begin(), nodes.end());
  for (const auto& group : groups) {
    std::copy_if(group.nodes.begin(), group.nodes.end(), std::back_inserter(ordered),
                 [&](const auto& name) { return wanted.contains(name); });
  }
  return ordered.size() == nodes.size() ? ordered : nodes;
}

Result<int> read_place(const SlurmVariables& reader, const char* name, std::size_t below) {
  auto number = reader.number(name, 0);
  if (!number) return number.error();
  if (*number < static_cast<std::int64_t>(below)) return static_cast<int>(*number);
  return usage_error(fmt::format("{}={}: there are {}", name, *number, below));
}

/// A step is srun's doing: it sets the step's id, its nodes and the task's place, of which a batch script has only the
/// last. The shell of salloc can be in a step as well, one of SLURM's own.
Result<bool> is_in_step(const SlurmVariables& reader) {
  auto id = reader.number(reader.text("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID", kFirstSpecialStep);
  if (!id) return id.error();
  return *id < kFirstSpecialStep && reader.text("SLURM_STEP_NODELIST") && reader.text("SLURM_PROCID");
}

Result<SlurmStep> read_step(const SlurmVariables& reader, const std::vector<SlurmGroup>& groups) {
  SlurmStep step;
  step.id = reader.text("SLURM_STEP_ID", "SLURM_STEPID").value_or("");
  auto nodes = reader.nodes("SLURM_STEP_NODELIST");
  if (!nodes) return nodes.error();
  step.nodes = in_order_of(groups, std::move(*nodes));
  auto tasks = reader.tasks("SLURM_STEP_TASKS_PER_NODE", step.nodes.size());
  if (!tasks) return tasks.error();
  step.tasks_on_node = std::move(*tasks);
  auto node_id = read_place(reader, "SLURM_NODEID", step.nodes.size());
  if (!node_id) return node_id.error();
  step.node_id = *node_id;
  for (auto [name, place] : {std::pair("SLURM_LOCALID", &step.local_id), std::pair("SLURM_PROCID", &step.proc_id)}) {
    auto number = read_place(reader, name, std::size_t{1} << 30);
    if (!number) return number.error();
    *place = *number;
  }
  return step;
}

/// srun --pty gives the first task a terminal. What is typed there is started once, not by each task: the others would
/// be waited for in vain.
bool has_shell(const SlurmVariables& reader, const SlurmStep& step) {
  const bool pty = reader.text("SLURM_PTY_PORT") || reader.text("SLURM_PTY_WIN_COL");
  return pty && std::accumulate(step.tasks_on_node.begin(), step.tasks_on_node.end(), 0) > 1;
}

Result<SlurmJob> read_job(const SlurmVariables& reader, std::string id, bool typed) {
  SlurmJob job;
  job.id = std::move(id);
  auto groups = read_groups(reader);
  if (!groups) return groups.error();
  job.groups = std::move(*groups);
  auto nodes = reader.nodes(reader.text("SLURM_JOB_NODELIST") ? "SLURM_JOB_NODELIST" : "SLURM_NODELIST");
  if (!nodes) return nodes.error();
  job.nodes = job.groups.empty() || job.groups.front().nodes.empty() ? std::move(*nodes) : job.groups.front().nodes;
  auto per_node =
      job.groups.empty() ? std::string("SLURM_TASKS_PER_NODE") : std::string("SLURM_TASKS_PER_NODE_HET_GROUP_0");
  auto tasks = reader.tasks(per_node, job.nodes.size());
  auto gpus = read_gpus(reader);
  auto restarts = reader.number("SLURM_RESTART_COUNT", 0);
  auto end = reader.number("SLURM_JOB_END_TIME", 0);
  if (!gpus) return gpus.error();
  if (!restarts) return restarts.error();
  if (!end) return end.error();
  job.gpus_on_node = *gpus;
  job.gpus_are_even = are_gpus_even(reader);
  job.restart_count = static_cast<int>(std::min<std::int64_t>(*restarts, 1 << 30));
  if (*end > 0) job.end_time = *end;
  job.this_node = reader.text("SLURMD_NODENAME").value_or("");
  auto in_step = is_in_step(reader);
  if (!in_step) return in_step.error();
  if (*in_step) {  // in a step SLURM_TASKS_PER_NODE is the step's
    auto step = read_step(reader, job.groups);
    if (!step) return step.error();
    if (typed && has_shell(reader, *step)) {
      job.shell_of = fmt::format("{}.{}", job.id, step->id);
    } else {
      job.step = std::move(*step);
    }
    if (!tasks) tasks = std::vector<int>(job.nodes.size(), 1);
  }
  if (!tasks) return tasks.error();
  job.tasks_on_node = std::move(*tasks);
  return job;
}

}  // namespace

Result<std::optional<SlurmJob>> read_slurm(const std::map<std::string, std::string>& environment, bool typed) {
  SlurmVariables reader(environment);
  auto id = reader.text("SLURM_JOB_ID", "SLURM_JOBID");
  if (!id) return std::optional<SlurmJob>();
  auto job = read_job(reader, std::move(*id), typed);
  if (!job) return job.error();
  if (job->nodes.empty()) return std::optional<SlurmJob>();  // such as in a prolog: nothing to run on
  return std::optional<SlurmJob>(std::move(*job));
}

}  // namespace taas::plan
