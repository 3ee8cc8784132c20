#include "slurm/submit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/shell.hpp"

namespace taas::cli {
namespace {

constexpr const char* kOutput = "--output=slurm-%j.out";

void add(std::vector<std::string>& command, const char* name, const std::optional<std::string>& value) {
  if (value) command.push_back(fmt::format("--{}={}", name, *value));
}

/// A heterogeneous job: the CPU machines are its second component.
void add_data_component(std::vector<std::string>& command, const plan::LaunchPlan& plan) {
  const auto& slurm = plan.options.slurm;
  command.emplace_back(":");
  command.push_back(fmt::format("--nodes={}", plan.data.count));
  command.emplace_back("--ntasks-per-node=1");
  add(command, "partition", slurm.data_partition ? slurm.data_partition : slurm.partition);
  add(command, "account", slurm.account);
  add(command, "time", slurm.time);
}

/// Over two components taas-run starts the steps itself.
std::string script_of(const std::string& taas_run, const std::vector<std::string>& arguments, bool two) {
  auto script = (two ? "exec " : "exec srun ") + quote_for_shell(taas_run);
  for (const auto& argument : arguments) script += " " + quote_for_shell(argument);
  return script;
}

}  // namespace

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

std::vector<std::string> submit_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                        const std::vector<std::string>& arguments) {
  bool two = plan.data.count > 0 && plan.data.hosts.empty();
  auto options = resources_of_nodes(plan);
  std::vector<std::string> command{"srun", "--disable-status"};  // one SIGINT is told to the agents at once
  if (two) command = {"salloc"};                                 // srun would start one step over both components
  if (plan.options.slurm.detach) command = {"sbatch", "--parsable", "--open-mode=append", kOutput};
  command.insert(command.end(), options.begin(), options.end());
  if (plan.options.slurm.detach) command.push_back("--wrap=" + script_of(taas_run, arguments, two));
  if (two) add_data_component(command, plan);
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
