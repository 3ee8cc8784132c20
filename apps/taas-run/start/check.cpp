#include "start/check.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <span>
#include <string>
#include <utility>

#include "base/exit_status.hpp"
#include "base/json/json.hpp"
#include "base/json/published_json.hpp"
#include "node/check/examine.hpp"
#include "parse/boundary.hpp"
#include "start/local_programs.hpp"
#include "start/serve.hpp"
#include "ui/view/check_page.hpp"

namespace taas::cli {
namespace {

void write_out(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

/// With this process's standard streams. Returns its exit code.
Result<int> run_in_front(std::vector<std::string> command) {
  std::vector<char*> words;
  for (auto& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, words.front(), nullptr, nullptr, words.data(), environ);
  if (failed != 0) return system_error(command.front(), failed);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalExitCode + WTERMSIG(status);
}

}  // namespace

bool check_this_machine(const plan::LaunchPlan& plan, plan::Machine machine) {
  std::error_code unknown;
  node::Launch launch;
  launch.settings = plan::launch_settings(plan, machine, std::filesystem::current_path(unknown));
  const auto program = resolve_here(launch, machine);
  const auto wish = node::examine_wish(launch.settings, machine, program, plan.world_size());
  run::CheckReport report;
  report.nodes.push_back({machine.hostname, false, node::examine_by_child(wish), {}, {}});
  report.findings = run::find_faults(report.nodes);
  for (auto& finding : report.findings) finding.nodes.clear();  // there is only one
  report.ok =
      std::ranges::find(report.findings, run::Severity::kError, &run::Finding::severity) == report.findings.end();
  if (plan.options.check_only) {
    print_check(report, plan.options.output, machine.environment);
    return report.ok;
  }
  if (plan.options.output.json && !report.ok) print_check(report, plan.options.output, machine.environment);
  for (const auto& finding : report.findings) {
    std::fputs(fmt::format("taas-run: --preflight: {}\n", run::line_of(finding, 1)).c_str(), stderr);
  }
  return report.ok;
}

void print_check(const run::CheckReport& report, const plan::OutputOptions& output, const Environment& environment) {
  if (output.json) return write_out(published_document(report) + "\n");
  const ui::Style style(ui::wants_color(output.color, environment, ::isatty(STDOUT_FILENO) == 1));
  write_out(ui::check_page(report, style));
}

/// What is given last counts, and options end where the program begins.
Result<int> check_before_speed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), called_path());
  auto boundary = find_program(std::span(arguments).subspan(1));
  if (!boundary) return boundary.error();
  arguments.insert(arguments.begin() + 1 + static_cast<std::ptrdiff_t>(boundary->options_end), "--speed=no");
  return run_in_front(arguments);
}

plan::ProgramOptions speed_program() {
  plan::ProgramOptions program;
  program.program = "taas.speed";
  program.module = true;
  return program;
}

int examine_for_agent(const Environment& environment) {
  std::string line;
  std::getline(std::cin, line);
  const auto value = parse_json(line);
  const auto wish = value ? from_json<node::ExamineWish>(*value) : Result<node::ExamineWish>(value.error());
  if (!wish) return 1;  // an agent of another release started it
  write_out(boost::json::serialize(to_json(node::examine(*wish, environment))));
  std::_Exit(0);  // a look that hangs in a thread is left behind
}

}  // namespace taas::cli
