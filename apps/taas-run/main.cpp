// taas-run: reads the command line, plans, and runs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/exit_status.hpp"
#include "base/files.hpp"
#include "base/log/log_file.hpp"
#include "base/text.hpp"
#include "flags/help_words.hpp"
#include "frameworks/accelerate.hpp"
#include "frameworks/deepspeed.hpp"
#include "frameworks/foreign_package.hpp"
#include "frameworks/ray_train.hpp"
#include "net/secret.hpp"
#include "node/ranks/rank_starts.hpp"
#include "parse/arguments.hpp"
#include "parse/cli.hpp"
#include "parse/misplaced.hpp"
#include "parse/suggestion.hpp"
#include "plan/environment/data_environment.hpp"
#include "plan/launch_plan.hpp"
#include "proc/machine/gpus.hpp"
#include "proc/machine/machine.hpp"
#include "proc/spawn/open_files.hpp"
#include "slurm/job_gpus.hpp"
#include "start/check_module.hpp"
#include "start/devices.hpp"
#include "start/dry_run.hpp"
#include "start/launch.hpp"
#include "start/local_programs.hpp"
#include "start/own_network.hpp"
#include "start/serve.hpp"

namespace {

using namespace taas;

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

Environment read_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');  // an empty name is none that a shell could set, but is passed on like all others
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

plan::Machine read_machine() {
  plan::Machine machine;
  machine.hostname = hostname();
  machine.cores = usable_cores();
  machine.on_terminal = ::isatty(STDOUT_FILENO) == 1;
  machine.typed = ::isatty(STDIN_FILENO) == 1 && ::getpgrp() != ::getsid(0);  // such a shell gives each command a group
  machine.environment = read_environment();
  auto gpus = find_gpus(machine.environment);
  machine.gpus = gpus.visible;
  machine.gpu_problem = std::move(gpus.problem);
  machine.other_accelerators = std::move(gpus.uncounted);
  machine.accelerator_variable = std::move(gpus.variable);
  machine.sliced_gpus = gpus.sliced;
  plan::forget_data_delivery(machine.environment);
  machine.python_packages = python_packages();
  machine.preload_hook = python_part("preload");
  machine.rank_extension = python_part("rank");
  return machine;
}

/// Whether SLURM could run what this machine has no GPUs for. Who says --standalone means this machine.
bool submits_jobs(const plan::Options& options, const plan::Machine& machine) {
  bool here = machine.gpus > 0 || options.rendezvous.standalone || machine.environment.contains("SLURM_JOB_ID");
  return !here && !LocalPrograms(machine.environment).find_in_path("sbatch").empty();
}

/// Nothing more can be done where standard error takes nothing either.
void say(const Error& error) { std::fputs(fmt::format("taas-run: {}\n", printable(error.message)).c_str(), stderr); }

int refuse(const Error& error) {
  say(error);
  if (error.code != ErrorCode::kCannotExecute) return kUsageExitCode;
  return error.system_errno == ENOENT ? kNotFound : kNotExecutable;
}

/// A reader that has read enough is no failure.
int print(const std::string& text) {
  bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return 0;
  say(system_error("standard output: cannot write", errno));
  return 1;
}

int print_devices(const plan::Machine& machine) {
  auto report = cli::report_devices(machine);
  auto printed = print(report.text);
  return report.all_work ? printed : 1;
}

/// A command is the whole command line: a program of that name is ./token. Nothing: it is none.
std::optional<int> own_command(const std::vector<std::string>& arguments) {
  const auto is = [&](const cli::Command& command) { return !arguments.empty() && arguments.front() == command.name; };
  const auto* command = std::ranges::find_if(cli::kCommands, is);
  if (command == std::end(cli::kCommands) || arguments.size() > 2) return std::nullopt;
  const bool asks = arguments.size() == 2;
  if (asks && arguments[1] != "--help" && arguments[1] != "-h") return std::nullopt;
  if (is(cli::kHelp)) return print(cli::help_text());
  if (asks) return print(fmt::format("taas-run {}: {}.\n", command->name, command->help));
  if (is(cli::kToken)) return print(net::make_token() + "\n");
  return print_devices(read_machine());
}

/// Programs of other machines are looked for there.
Result<plan::ResolvedProgram> find_program(plan::LaunchPlan& plan, const plan::Machine& machine) {
  bool here = std::holds_alternative<plan::OneMachine>(plan.launch_mode);
  auto readable = plan::check_streamed_program(plan.options.program, plan.world_size(), here);
  if (!readable) return readable.error();
  if (!here && !plan.options.dry_run) return plan::ResolvedProgram();
  auto program = plan::resolve_program(plan.options, LocalPrograms(machine.environment));
  if (!program) {
    auto meant = cli::nearest_command(plan.options.program.program);
    if (meant.empty() || program.error().system_errno != ENOENT) return program.error();
    return Error{program.error().code, ENOENT, fmt::format("{}; did you mean {}?", program.error().message, meant)};
  }
  plan.notices.insert(plan.notices.end(), program->notices.begin(), program->notices.end());
  for (auto& note :
       {cli::note_on_accelerate(*program, machine), cli::note_on_ray_train(*program, machine, plan.world_size()),
        cli::note_on_misplaced_option(*program, plan.options.program)}) {
    plan.note(note);
  }
  return program;
}

/// Ranks of other machines are their agents' to count.
int ranks_here(const plan::LaunchPlan& plan) {
  return std::holds_alternative<plan::OneMachine>(plan.launch_mode) ? plan.world_size() : 0;
}

/// Whether --numa-binding can be done here.
Result<> check_binding(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  if (plan.options.program.numa_binding == NumaBinding::kNone || ranks_here(plan) == 0) return {};
  auto bound = node::bind_ranks(plan::launch_settings(plan, machine, ""), machine, plan.ranks);
  return bound ? Result<>() : bound.error();
}

/// --log-level or else TAAS_LOG; agents that a coordinator starts are told by it.
Result<> begin_log(plan::OutputOptions& output, const plan::Machine& machine) {
  bool by_variable = output.log_level.empty();
  if (by_variable) output.log_level = value_of(machine.environment, kLogVariable);
  auto settings = parse_log_settings(output.log_level);
  if (!settings) return std::move(settings).error().with(kLogVariable);
  log::configure(*settings);
  return {};
}

int start(plan::Options options, plan::Machine machine, std::vector<std::string> arguments) {
  if (options.as_agent) {
    if (auto enough = check_open_files_limit(0); !enough) return refuse(enough.error());
    auto code = cli::run_as_agent(std::move(machine));
    return code ? *code : refuse(code.error());
  }
  if (!options.slurm.staged_node.empty()) {
    auto code = cli::run_as_staged_node(options, std::move(machine));
    return code ? *code : refuse(code.error());
  }
  if (auto begun = begin_log(options.output, machine); !begun) return refuse(begun.error());
  if (auto followed = cli::follow_deepspeed(options, machine); !followed) return refuse(followed.error());
  machine.submits_jobs = submits_jobs(options, machine);
  machine.job_gpus = cli::ask_for_gpus_by_node(options, machine);
  auto plan = plan::make_plan(options, machine, options.rendezvous.run_id.value_or(make_run_id()));
  if (!plan) {
    say(plan.error());
    if (!options.dry_run) cli::refuse_in_step(options, std::move(machine), plan.error());
    return kUsageExitCode;
  }
  if (auto own = cli::check_own_network(*plan, machine); !own) return refuse(own.error());
  if (auto checked = cli::check_foreign_package(*plan); !checked) return refuse(checked.error());
  auto program = find_program(*plan, machine);
  if (!program) return refuse(program.error());
  if (auto up = cli::check_loopback(*plan, *program); !up) return refuse(up.error());
  if (auto bound = check_binding(*plan, machine); !bound) return refuse(bound.error());
  if (options.dry_run) {
    const bool told = std::holds_alternative<plan::OneMachine>(plan->launch_mode) && !options.output.json;
    auto found = told ? cli::check_module(*program, options.program, machine) : Result<>();
    return found ? print(cli::dry_run(*plan, machine, program->command)) : refuse(found.error());
  }
  if (auto enough = check_open_files_limit(ranks_here(*plan)); !enough) return refuse(enough.error());
  auto code = cli::launch({std::move(*plan), std::move(machine), std::move(*program), std::move(arguments)});
  return code ? *code : refuse(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f: the write that is too much fails, and is told of
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (auto code = own_command(arguments)) return *code;
  auto machine = read_machine();
  auto parsed = cli::parse(arguments, machine.environment, read_file);
  if (!parsed) return refuse(parsed.error());
  if (auto* text = std::get_if<cli::PrintAndExit>(&*parsed)) return print(text->text);
  return start(std::get<plan::Options>(*parsed), std::move(machine), std::move(arguments));
}
