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

constexpr const char* kRanksNode = "ranks";
constexpr auto kSubmitPatience = std::chrono::minutes(2);  // SLURM's commands themselves try for that long

void append(Words& words, const Words& more) { words.insert(words.end(), more.begin(), more.end()); }

/// A script that runs these words.
std::string wrap(const Words& words) { return "--wrap=exec " + quote_for_shell(words); }

/// A CPU machine is a whole one, unless the user has said how many workers it is for.
std::string share_of_machine(const std::optional<int>& cores) {
  return cores ? fmt::format("--cpus-per-task={}", *cores) : "--exclusive";
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

/// One agent on each node of the job.
Words step_of_agents(int nodes, const std::string& taas_run, const char* role, const Words& arguments) {
  auto step = launch::step_command(nodes, taas_run);
  step.back() = "--as-staged-node";
  step.emplace_back(role);
  append(step, arguments);
  return step;
}

}  // namespace

MeetingFile meeting_file(const std::string& output_directory, const std::string& held_job) {
  return {fmt::format("{}/.taas-staged-{}", output_directory, held_job), "the coordinator of the staged submission"};
}

Words held_job_command(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments) {
  auto command = sbatch_command();
  append(command,
         {"--hold", "--no-requeue",
          fmt::format("--comment=held by taas-run until CPU machines have prepared {}", plan.options.data.loader)});
  append(command, resources_of_nodes(plan));
  command.push_back(wrap(step_of_agents(plan.expected_agents, taas_run, kRanksNode, arguments)));
  return command;
}

Words preparing_job_command(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments,
                            const std::string& held_job) {
  Words own{"--held-job", held_job};
  append(own, arguments);
  auto script = step_of_agents(plan.data.count, taas_run, kDataNode, own);
  if (plan.options.slurm.detach) {
    script = {taas_run};
    append(script, own);
  }
  auto command = sbatch_command();
  append(command, {"--requeue", "--no-kill", share_of_machine(plan.options.data.cores)});
  append(command, resources_of_machines(plan, plan.options.slurm.data_time));
  command.push_back(wrap(script));
  return command;
}

Result<StagedIds> submit_staged(const plan::LaunchPlan& plan, const std::string& taas_run, const Words& arguments) {
  auto held = submit(held_job_command(plan, taas_run, arguments), "the job of the GPU nodes");
  if (!held) return held.error();
  auto preparing = submit(preparing_job_command(plan, taas_run, arguments, *held), "the job of the CPU machines");
  if (preparing) return StagedIds{std::move(*held), std::move(*preparing)};
  cancel_jobs({*held, ""});
  return preparing.error();
}

void cancel_jobs(const StagedIds& ids) {
  for (const auto& id : {ids.held, ids.preparing}) {
    if (id.empty()) continue;
    auto end = run_command({"scancel", id}, kSubmitPatience, Complaints::kShown);
    if (!end || end->exit_code != 0) fmt::print(stderr, "taas-run: job {} is left: scancel {} ends it\n", id, id);
  }
}

std::string describe(const StagedIds& ids, const std::string& loader) {
  return fmt::format("job {} prepares {} on CPU machines; job {} has the GPU nodes, and is held until then",
                     ids.preparing, loader, ids.held);
}

int print_ids(const StagedIds& ids, const std::string& loader) {
  fmt::print(stderr, "taas-run: {}\n", describe(ids, loader));
  fmt::print("{}\n{}\n", ids.preparing, ids.held);
  return 0;
}

}  // namespace taas::cli
