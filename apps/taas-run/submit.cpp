#include "submit.hpp"

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

std::vector<std::string> resources(const plan::LaunchPlan& plan) {
  const auto& slurm = plan.options.slurm;
  std::vector<std::string> options{fmt::format("--nodes={}", plan.expected_agents), "--ntasks-per-node=1"};
  if (plan.device == plan::Device::kGpu && !slurm.gres) {
    options.push_back(fmt::format("--gpus-per-node={}", plan.nodes.front().local_world_size));
  }
  add(options, "gres", slurm.gres);
  add(options, "partition", slurm.partition);
  add(options, "account", slurm.account);
  add(options, "time", slurm.time);
  if (slurm.requeue) options.push_back("--requeue");
  for (const auto& option : slurm.options) options.push_back("--" + option);
  return options;
}

}  // namespace

std::vector<std::string> submit_command(const plan::LaunchPlan& plan, const std::string& taas_run,
                                        const std::vector<std::string>& arguments) {
  auto options = resources(plan);
  if (!plan.options.slurm.detach) {
    std::vector<std::string> command{"srun", "--disable-status"};  // one SIGINT is told to the agents at once
    command.insert(command.end(), options.begin(), options.end());
    command.push_back("--");
    command.push_back(taas_run);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return command;
  }
  std::string script = "exec srun " + quote_for_shell(taas_run);
  for (const auto& argument : arguments) script += " " + quote_for_shell(argument);
  std::vector<std::string> command{"sbatch", "--parsable", "--open-mode=append", kOutput};
  command.insert(command.end(), options.begin(), options.end());
  command.push_back("--wrap=" + script);
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
