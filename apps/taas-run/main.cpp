// taas-run: reads the command line, plans, and runs.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/environment/environment.hpp"
#include "base/exit_status.hpp"
#include "base/files.hpp"
#include "base/json/published_json.hpp"
#include "base/log/log_file.hpp"
#include "command/command.hpp"
#include "command/documents.hpp"
#include "frameworks/accelerate.hpp"
#include "frameworks/deepspeed.hpp"
#include "frameworks/foreign_package.hpp"
#include "frameworks/ray_train.hpp"
#include "look/look.hpp"
#include "net/secret.hpp"
#include "node/check/examiner.hpp"
#include "node/looks/native_looks.hpp"
#include "parse/cli.hpp"
#include "plan/environment/data_environment.hpp"
#include "plan/launch_plan.hpp"
#include "plan/options/loader_names.hpp"
#include "proc/family/keeper.hpp"
#include "proc/machine/gpus.hpp"
#include "proc/machine/machine.hpp"
#include "proc/spawn/open_files.hpp"
#include "runs/runs.hpp"
#include "session/session_client.hpp"
#include "session/session_commands.hpp"
#include "session/session_order.hpp"
#include "slurm/job_gpus.hpp"
#include "start/check.hpp"
#include "start/devices.hpp"
#include "start/dry_run.hpp"
#include "start/launch.hpp"
#include "start/local_programs.hpp"
#include "start/meant_program.hpp"
#include "start/own_network.hpp"
#include "start/refusal.hpp"
#include "start/serve.hpp"
#include "ui/view/renderer.hpp"

namespace {

using namespace taas;

constexpr const char* kKeepFlag = "--keep";  // as in lib/python/preload/taas_preload/launcher.py

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
  machine.environment = read_environment();
  auto gpus = find_gpus(machine.environment);
  machine.gpus = gpus.visible;
  machine.gpu_problem = std::move(gpus.problem);
  machine.other_accelerators = std::move(gpus.uncounted);
  plan::forget_data_delivery(machine.environment);
  machine.python_packages = python_packages();
  machine.preload_hook = python_part("preload");
  machine.rank_extension = python_part("rank");
  machine.post_mortem = python_part("post_mortem");
  if (const char* terminal = ::ttyname(STDIN_FILENO)) machine.terminal = terminal;
  if (const auto terminal = ui::inspect_terminal(); terminal.same) machine.console_columns = terminal.columns;
  return machine;
}

/// Whether SLURM could run what this machine has no GPUs for. Who says --standalone means this machine.
bool submits_jobs(const plan::Options& options, const plan::Machine& machine) {
  bool here = machine.gpus > 0 || options.rendezvous.standalone || machine.environment.contains("SLURM_JOB_ID");
  return !here && !LocalPrograms(machine.environment).find_in_path("sbatch").empty();
}

/// A reader that has read enough is no failure.
int print(const std::string& text) {
  bool written = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (written || errno == EPIPE) return 0;
  cli::tell(system_error("standard output: cannot write", errno), cli::ErrorForm::kText);
  return kFailedExitCode;
}

/// Programs of other machines are looked for there.
Result<plan::ResolvedProgram> find_program(plan::LaunchPlan& plan, const plan::Machine& machine) {
  bool here = std::holds_alternative<plan::OneMachine>(plan.launch_mode);
  auto readable = plan::check_streamed_program(plan.options.program, plan.world_size(), here);
  if (!readable) return readable.error();
  if (plan.options.check_only || (!here && !plan.options.dry_run)) return plan::ResolvedProgram();
  auto program = plan::resolve_program(plan.options.program, LocalPrograms(machine.environment));
  if (!program) return cli::name_what_was_meant(program.error(), plan.options.program);
  auto loaders = program->python ? plan::check_python_loaders(plan.options.data.loader) : Result<>();
  if (!loaders) return loaders.error();
  plan.notices.insert(plan.notices.end(), program->notices.begin(), program->notices.end());
  for (auto& note :
       {cli::note_on_accelerate(*program, machine), cli::note_on_ray_train(*program, machine, plan.world_size())}) {
    if (!note.empty()) plan.notices.push_back(note);
  }
  return program;
}

/// Ranks of other machines are their agents' to count.
int ranks_here(const plan::LaunchPlan& plan) {
  return std::holds_alternative<plan::OneMachine>(plan.launch_mode) ? plan.world_size() : 0;
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

/// CPU machines over ssh are looked at as nodes are; those of batch systems would have to be waited for.
plan::DataOptions data_to_check(const plan::DataOptions& wanted) {
  plan::DataOptions options;
  if (!wanted.hosts) return options;
  options.cpus = wanted.cpus;
  options.hosts = wanted.hosts;
  return options;
}

/// `typed`: the whole command line, as the user gave it.
int start(plan::Options options, plan::Machine machine, std::vector<std::string> arguments,
          std::vector<std::string> typed) {
  const auto refuse = [form = options.output.json ? cli::ErrorForm::kJson : cli::ErrorForm::kText](const Error& error) {
    return cli::refuse(error, form);
  };
  if (options.check_only) options.data = data_to_check(options.data);
  if (options.check_speed) {
    auto fit = cli::check_before_speed(arguments);
    if (!fit) return refuse(fit.error());
    if (*fit != 0) return *fit;
    options.check_speed = options.check_only = false;
    options.program = cli::speed_program();
  }
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
    const auto code = refuse(plan.error());
    if (!options.dry_run) cli::refuse_in_step(options, std::move(machine), plan.error());
    return code;
  }
  plan->command = std::move(typed);
  if (auto own = cli::check_own_network(*plan, machine); !own) return refuse(own.error());
  if (auto checked = cli::check_foreign_package(*plan); !checked) return refuse(checked.error());
  auto program = find_program(*plan, machine);
  if (!program) return refuse(program.error());
  if (options.dry_run) return print(cli::dry_run(*plan, machine, program->command));
  const bool checks_here =
      std::holds_alternative<plan::OneMachine>(plan->launch_mode) && (options.check_only || options.preflight);
  if (checks_here) {
    const bool fit = cli::check_this_machine(*plan, machine);
    if (options.check_only) return fit ? 0 : kFailedExitCode;
    if (!fit) return kUsageExitCode;
  }
  if (auto enough = check_open_files_limit(ranks_here(*plan)); !enough) return refuse(enough.error());
  auto code = cli::launch({std::move(*plan), std::move(machine), std::move(*program), std::move(arguments)});
  return code ? *code : refuse(code.error());
}

Result<int> print_token(const std::vector<std::string>& arguments, const Environment&) {
  cli::Subcommand command("token", "Makes a secret for nodes that join: TAAS_TOKEN, or a file for --token-file.");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  const auto token = net::make_token();
  return print(command.as_json ? published_document(cli::TokenDocument{token}) + "\n" : token + "\n");
}

Result<int> print_devices(const std::vector<std::string>& arguments, const Environment&) {
  cli::Subcommand command("devices", "Shows what ranks on this machine can compute on, and tries it.");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  const auto found = cli::find_devices(read_machine());
  const auto printed = print(command.as_json ? published_document(found) + "\n" : cli::as_text(found));
  return found.ok ? printed : kFailedExitCode;
}

Result<int> make_session(const std::vector<std::string>& arguments, const Environment&) {
  auto machine = read_machine();
  cli::take_token(machine);
  return cli::up(arguments, machine);
}

bool is_file_here(const std::string& name) {
  std::error_code failed;
  return std::filesystem::is_regular_file(name, failed);
}

using Command = Result<int> (*)(const std::vector<std::string>& arguments, const Environment& environment);

/// Those that have no run's options. A file here that is called like a command about past runs is the program.
Command find_command(const std::string& word) {
  if (word == "token") return print_token;
  if (word == "devices") return print_devices;
  if (word == "look") return cli::look;
  if (word == "top") return cli::top;
  if (is_file_here(word)) return nullptr;
  if (word == "up") return make_session;
  if (word == "down") return cli::down;
  if (word == "sessions") return cli::sessions;
  return cli::find_runs_command(word);
}

/// Exit code 0 or what a command returns; nothing where the first word is none.
std::optional<int> obey_word(std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  if (arguments.front() == "help" && !is_file_here("help")) {
    arguments.erase(arguments.begin());
    const bool of_command = !arguments.empty() && find_command(arguments.front()) != nullptr;
    arguments.insert(of_command ? arguments.end() : arguments.begin(), "--help");
  }
  const auto form = cli::error_form(arguments);
  if (const auto command = find_command(arguments.front())) {
    auto code = command({arguments.begin() + 1, arguments.end()}, read_environment());
    return code ? *code : cli::refuse(code.error(), form);
  }
  const auto& word = arguments.front();
  if (word == cli::kCheck) arguments.front() = "--check-only";
  const auto meant = is_file_here(word) ? std::string() : cli::meant_by(word);
  if (meant.empty()) return std::nullopt;
  return cli::refuse(usage_error_with_fix(fmt::format("{}: there is no such program here", word), meant), form);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // ulimit -f: the write that is too much fails, and is told of
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto session = cli::take_from_session();
  if (arguments.size() == 3 && arguments.front() == kKeepFlag)
    keep_agent(std::atoi(argv[2]), Fd(std::atoi(argv[3])));  // launcher.py knows what it says
  if (arguments == std::vector<std::string>{node::kNameFramesFlag}) return node::name_frames_for_agent();
  if (arguments == std::vector<std::string>{node::kExamineFlag}) return cli::examine_for_agent(read_environment());
  if (auto code = obey_word(arguments)) return *code;
  auto machine = read_machine();
  auto parsed = cli::parse(arguments, machine.environment, read_file);
  if (!parsed) return cli::refuse(parsed.error(), cli::error_form(arguments));
  if (auto* text = std::get_if<cli::PrintAndExit>(&*parsed)) return print(text->text);
  auto& options = std::get<plan::Options>(*parsed);
  if (session) {
    cli::follow_session(session->wishes, options);
    machine.session_python = session->python;
  } else if (!options.session.empty()) {
    auto code = cli::run_in_session(options, {argv, argv + argc}, machine);
    if (!code || *code) return code ? **code : cli::refuse(code.error(), cli::error_form(arguments));
  }
  return start(std::move(options), std::move(machine), std::move(arguments), {argv, argv + argc});
}
