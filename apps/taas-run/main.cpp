// taas-run: reads the command line, plans, and runs.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "base/files.hpp"
#include "cli.hpp"
#include "dry_run.hpp"
#include "hosts/local_run.hpp"
#include "local_programs.hpp"
#include "plan/launch_plan.hpp"
#include "proc/keeper.hpp"
#include "proc/machine.hpp"

namespace {

using namespace taas;

constexpr int kUsage = 2;

std::map<std::string, std::string> read_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    auto equals = text.find('=');
    if (equals != std::string_view::npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

plan::Machine read_machine() {
  plan::Machine machine;
  machine.hostname = hostname();
  machine.gpus = visible_gpus();
  machine.cores = usable_cores();
  machine.environment = read_environment();
  return machine;
}

int refuse(const Error& error) {
  fmt::print(stderr, "taas-run: {}\n", error.message);
  return kUsage;
}

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

/// From here on there are two processes: this function goes on in the one that supervises the ranks.
int launch(hosts::LocalRunOptions options) {
  auto lifeline = become_kept();
  if (!lifeline) return refuse(lifeline.error());
  auto code = hosts::run_on_this_machine(std::move(options), std::move(*lifeline));
  return code ? *code : refuse(code.error());
}

int run(const plan::Options& options, plan::Machine machine) {
  auto plan = plan::make_plan(options, machine, options.rendezvous.run_id.value_or(make_run_id()));
  if (!plan) return refuse(plan.error());
  auto program = plan::resolve_program(options.program, LocalPrograms(machine.environment));
  if (!program) return refuse(program.error());
  plan->notices.insert(plan->notices.end(), program->notices.begin(), program->notices.end());
  if (options.dry_run) return print(cli::dry_run(*plan, machine, program->command));
  return launch({std::move(*plan), std::move(machine), std::move(program->command)});
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  auto machine = read_machine();
  auto parsed = cli::parse(arguments, machine.environment, read_file);
  if (!parsed) return refuse(parsed.error());
  if (auto* text = std::get_if<cli::PrintAndExit>(&*parsed)) return print(text->text);
  return run(std::get<plan::Options>(*parsed), std::move(machine));
}
