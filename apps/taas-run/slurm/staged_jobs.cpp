#include "slurm/staged_jobs.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "base/shell.hpp"
#include "base/text.hpp"
#include "launch/host_starter.hpp"
#include "slurm/submit.hpp"
#include "system/command_output.hpp"

namespace taas::cli {
namespace {

using Words = std::vector<std::string>;

constexpr auto kSubmitPatience = std::chrono::minutes(2);  // SLURM's commands themselves try for that long

std::string quoted(const Words& words) {
  std::string line = "exec";
  for (const auto& word : words) line += " " + quote_for_shell(word);
  return line;
}

Words sbatch_command() { return {"sbatch", "--parsable", "--open-mode=append", "--output=slurm-%j.out"}; }

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

/// A CPU machine is a whole one, unless the user has said how many workers it is for.
Words resources_of_machines(const plan::LaunchPlan& plan) {
  const auto& slurm = plan.options.slurm;
  const auto& cores = plan.options.data.cores;
  Words words{fmt::format("--nodes={}", plan.data.count), fmt::format("--ntasks={}", plan.data.count),
              "--ntasks-per-node=1", "--no-kill",
              cores ? fmt::format("--cpus-per-task={}", *cores) : std::string("--exclusive")};
  const auto& partition = slurm.data_partition ? slurm.data_partition : slurm.partition;
  if (partition) words.push_back("--partition=" + *partition);
  if (slurm.account) words.push_back("--account=" + *slurm.account);
  if (slurm.data_time) words.push_back("--time=" + *slurm.data_time);
  return words;
}

/// What sbatch --parsable prints: "17", or "17;cluster".
std::string id_of(const std::string& printed) {
  auto line = trim(printed, "\n");
  return std::string(line.substr(0, line.find(';')));
}

/// What goes wrong in sbatch, it says itself.
Result<std::string> submit(const Words& command, const char* what) {
  auto end = run_command(command, kSubmitPatience, Complaints::kShown);
  if (!end) return std::move(end).error().with(what);
  if (end->exit_code == 0) return id_of(end->output);
  return unavailable_error(
      fmt::format("{} was refused by SLURM: {} ended with code {}", what, command.front(), end->exit_code));
}

}  // namespace

MeetingFile held_job_file(const std::string& output_directory, const std::string& held_job) {
  return {fmt::format("{}/.taas-held-{}", output_directory, held_job), "the coordinator of the staged submission"};
}

Words held_job_command(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments) {
  auto step = launch::step_command(plan.expected_agents, taas_run);
  step.back() = "--as-held-node";
  append(step, arguments);
  auto command = sbatch_command();
  append(command,
         {"--hold", "--no-requeue",
          fmt::format("--comment=held by taas-run until CPU machines have prepared {}", plan.options.data.loader)});
  append(command, resources_of_nodes(plan));
  command.push_back("--wrap=" + quoted(step));
  return command;
}

Words preparing_job_command(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments,
                            const std::string& held_job) {
  Words script{taas_run, "--held-job", held_job};
  append(script, arguments);
  auto command = sbatch_command();
  command.emplace_back("--requeue");
  append(command, resources_of_machines(plan));
  command.push_back("--wrap=" + quoted(script));
  return command;
}

Words preparing_step_command(const plan::LaunchPlan& plan, const std::string& taas_run) {
  Words command{"srun", "--cpu-bind=none", "--kill-on-bad-exit=0"};
  append(command, resources_of_machines(plan));
  append(command, {"--", taas_run, "--as-agent"});
  return command;
}

Result<std::string> submit_held_job(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments) {
  return submit(held_job_command(plan, taas_run, arguments), "the job of the GPU nodes");
}

Result<int> submit_preparing_job(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments,
                                 const std::string& held_job) {
  auto id = submit(preparing_job_command(plan, taas_run, arguments, held_job), "the job of the CPU machines");
  if (!id) {
    cancel_held_job(held_job);
    return id.error();
  }
  fmt::print("{}\n{}\n", *id, held_job);
  fmt::print(stderr, "taas-run: job {} prepares {} and coordinates; job {} has the GPU nodes, and is held until then\n",
             *id, plan.options.data.loader, held_job);
  return 0;
}

void cancel_held_job(const std::string& held_job) {
  auto end = run_command({"scancel", held_job}, kSubmitPatience, Complaints::kShown);
  if (end && end->exit_code == 0) return;
  fmt::print(stderr, "taas-run: job {} is still held: scancel {} ends it\n", held_job, held_job);
}

}  // namespace taas::cli
