#include "plan/slurm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "plan/numbers.hpp"

namespace taas::plan {
namespace {

constexpr std::int64_t kMostGroups = 1024;
// Steps that are no step of the user's: SLURM's ids of the interactive, batch and extern steps.
constexpr std::int64_t kFirstSpecialStep = 4294967290;

/// The environment, with errors that name the variable.
class Reader {
 public:
  explicit Reader(const std::map<std::string, std::string>& environment) : environment_(environment) {}

  /// An empty variable counts as unset.
  [[nodiscard]] std::optional<std::string> text(const std::string& name) const {
    auto found = environment_.find(name);
    if (found == environment_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& name, const std::string& otherwise) const {
    auto value = text(name);
    return value ? value : text(otherwise);
  }
  [[nodiscard]] Result<std::int64_t> number(const std::string& name, std::int64_t otherwise) const {
    auto value = text(name);
    if (!value) return otherwise;
    std::int64_t number = 0;
    const char* end = value->data() + value->size();
    auto [stopped, problem] = std::from_chars(value->data(), end, number);
    if (problem == std::errc() && stopped == end && number >= 0) return number;
    return usage_error(fmt::format("{}={}: not a number", name, *value));
  }
  [[nodiscard]] Result<std::vector<std::string>> nodes(const std::string& name) const {
    auto value = text(name);
    if (!value) return std::vector<std::string>();
    auto names = expand_nodelist(*value);
    if (!names) return std::move(names).error().with(name);
    return names;
  }
  /// One number a node; a value that does not fit the list of nodes is ours to doubt, not to guess at.
  [[nodiscard]] Result<std::vector<int>> tasks(const std::string& name, std::size_t nodes) const {
    auto value = text(name);
    if (!value) return std::vector<int>(nodes, 1);
    auto counts = expand_task_counts(*value);
    if (!counts) return std::move(counts).error().with(name);
    if (counts->size() == nodes) return counts;
    return usage_error(
        fmt::format("{}={}: {} nodes, and the list of nodes has {}", name, *value, counts->size(), nodes));
  }

 private:
  const std::map<std::string, std::string>& environment_;
};

/// Entries of CUDA_VISIBLE_DEVICES, where SLURM does not say the number itself.
int count_devices(const Reader& reader) {
  auto devices = reader.text("CUDA_VISIBLE_DEVICES");
  if (!devices || *devices == "NoDevFiles" || *devices == "-1") return 0;
  return static_cast<int>(split(*devices, ',').size());
}

Result<int> read_gpus(const Reader& reader) {
  auto value = reader.text("SLURM_GPUS_ON_NODE");
  if (!value) return count_devices(reader);
  auto number = parse_integer(std::string_view(*value).substr(value->rfind(':') + 1));  // "8", or "gpu:8"
  if (number && *number >= 0) return *number;
  return usage_error(fmt::format("SLURM_GPUS_ON_NODE={}: not a number of GPUs", *value));
}

/// Components of a heterogeneous job; older releases call them packs.
Result<std::vector<SlurmGroup>> read_groups(const Reader& reader) {
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

std::vector<std::string> nodes_of(const std::vector<SlurmGroup>& groups) {
  std::vector<std::string> nodes;
  for (const auto& group : groups) nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
  return nodes;
}

Result<int> read_place(const Reader& reader, const char* name, std::size_t below) {
  auto number = reader.number(name, 0);
  if (!number) return number.error();
  if (*number < static_cast<std::int64_t>(below)) return static_cast<int>(*number);
  return usage_error(fmt::format("{}={}: there are {}", name, *number, below));
}

/// A step is srun's doing: it sets the step's id, its nodes and the task's place, of which a batch script has only the
/// last. The shell of salloc can be in a step as well, one of SLURM's own.
Result<bool> is_in_step(const Reader& reader) {
  auto id = reader.number(reader.text("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID", kFirstSpecialStep);
  if (!id) return id.error();
  return *id < kFirstSpecialStep && reader.text("SLURM_STEP_NODELIST") && reader.text("SLURM_PROCID");
}

Result<SlurmStep> read_step(const Reader& reader, const std::vector<SlurmGroup>& groups) {
  SlurmStep step;
  step.id = reader.text("SLURM_STEP_ID", "SLURM_STEPID").value_or("");
  auto nodes = reader.nodes("SLURM_STEP_NODELIST");
  if (!nodes) return nodes.error();
  step.nodes = std::move(*nodes);
  auto tasks = reader.tasks("SLURM_STEP_TASKS_PER_NODE", step.nodes.size());
  if (!tasks) return tasks.error();
  step.tasks_on_node = std::move(*tasks);
  auto all = nodes_of(groups);  // numbers of nodes and tasks run on over the groups
  auto node_id = read_place(reader, "SLURM_NODEID", std::max(step.nodes.size(), all.size()));
  if (!node_id) return node_id.error();
  if (*node_id >= static_cast<int>(step.nodes.size())) {
    step.nodes = std::move(all);
    step.tasks_on_node.assign(step.nodes.size(), 1);
  }
  step.node_id = *node_id;
  for (auto [name, place] : {std::pair("SLURM_LOCALID", &step.local_id), std::pair("SLURM_PROCID", &step.proc_id)}) {
    auto number = read_place(reader, name, std::size_t{1} << 30);
    if (!number) return number.error();
    *place = *number;
  }
  return step;
}

Result<SlurmJob> read_job(const Reader& reader, std::string id) {
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
  job.restart_count = static_cast<int>(std::min<std::int64_t>(*restarts, 1 << 30));
  if (*end > 0) job.end_time = *end;
  job.this_node = reader.text("SLURMD_NODENAME").value_or("");
  auto in_step = is_in_step(reader);
  if (!in_step) return in_step.error();
  if (*in_step) {  // in a step SLURM_TASKS_PER_NODE is the step's
    auto step = read_step(reader, job.groups);
    if (!step) return step.error();
    job.step = std::move(*step);
    if (!tasks) tasks = std::vector<int>(job.nodes.size(), 1);
  }
  if (!tasks) return tasks.error();
  job.tasks_on_node = std::move(*tasks);
  return job;
}

}  // namespace

Result<std::optional<SlurmJob>> read_slurm(const std::map<std::string, std::string>& environment) {
  Reader reader(environment);
  auto id = reader.text("SLURM_JOB_ID", "SLURM_JOBID");
  if (!id) return std::optional<SlurmJob>();
  auto job = read_job(reader, std::move(*id));
  if (!job) return job.error();
  if (job->nodes.empty()) return std::optional<SlurmJob>();  // such as in a prolog: nothing to run on
  return std::optional<SlurmJob>(std::move(*job));
}

}  // namespace taas::plan
