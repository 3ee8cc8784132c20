#include "slurm/submit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/shell.hpp"

namespace taas::cli {
namespace {

using Words = std::vector<std::string>;

void add(Words& command, const char* name, const std::optional<std::string>& value) {
  if (value) command.push_back(fmt::format("--{}={}", name, *value));
}

/// Over two components taas-run starts the steps itself.
std::string script_of(const std::string& taas_run, const Words& arguments, bool two) {
  Words words{taas_run};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return (two ? "exec " : "exec srun ") + quote_for_shell(words);
}

}  // namespace

Words sbatch_command() { return {"sbatch", "--parsable", "--open-mode=append", "--output=slurm-%j.out"}; }

std::vector<std::string> resources_of_nodes(const plan::LaunchPlan& plan) {
  const auto& slurm = plan.options.slurm;
  std::vector<std::string> options{fmt::format("--nodes={}", plan.expected_agents), "--ntasks-per-node=1"};
  if (plan.device == plan::Device::kGpu && !slurm.gres) {
    options.push_back(fmt::format(
        "--gpus-per-node={}", std::int64_t{plan.nodes.front().local_world_size} * plan.options.size.devices_per_rank));
  }
  add(options, "gres", slurm.gres);
  add(options, "partition", slurm.partition);
  add(options, "account", slurm.account);
  add(options, "time", slurm.time);
  if (slurm.requeue) options.push_back("--requeue");
  for (const auto& option : slurm.options) options.push_back("--" + option);
  return options;
}

std::vector<std::string> resources_of_machines(const plan::LaunchPlan& plan, const std::optional<std::string>& time) {
  const auto& slurm = plan.options.slurm;
  Words options{fmt::format("--nodes={}", plan.data.count), "--ntasks-per-node=1"};
  add(options, "partition", slurm.data_partition ? slurm.data_partition : slurm.partition);
  add(options, "account", slurm.account);
  add(options, "time", time);
  return options;
}

std::vector<std::string> submit_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                        const std::vector<std::string>& arguments) {
  bool two = plan.data.count > 0 && plan.data.hosts.empty();
  auto options = resources_of_nodes(plan);
  std::vector<std::string> command{"srun", "--disable-status"};  // one SIGINT is told to the agents at once
  if (two) command = {"salloc"};                                 // srun would start one step over both components
  if (plan.options.slurm.detach) command = sbatch_command();
  command.insert(command.end(), options.begin(), options.end());
  if (plan.options.slurm.detach) command.push_back("--wrap=" + script_of(taas_run, arguments, two));
  if (two) {  // a heterogeneous job: the CPU machines are its second component
    command.emplace_back(":");
    auto machines = resources_of_machines(plan, plan.options.slurm.time);
    command.insert(command.end(), machines.begin(), machines.end());
  }
  if (plan.options.slurm.detach) return command;
  if (!two) command.emplace_back("--");
  command.push_back(taas_run);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Result<int> submit(const plan::LaunchPlan& plan, const std::string& taas_run,
                   const std::vector<std::string>& arguments) {
  auto command = submit_command(plan, taas_run, arguments);
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  auto error = system_error(fmt::format("cannot run {}", command.front()), errno);
  error.message += "; --slurm needs SLURM's commands on this machine";
  return error;
}

}  // namespace taas::cli
