// The plan of a command line as --dry-run prints it, on a machine without GPUs: to be compared with real torchrun.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "base/files.hpp"
#include "parse/cli.hpp"
#include "start/dry_run.hpp"

using namespace taas;

namespace {

Environment read_environment() {
  Environment variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    variables.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  return variables;
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  plan::Machine machine{"here", 0, 2, read_environment()};
  auto parsed = cli::parse(std::vector<std::string>(argv + 1, argv + argc), machine.environment, read_file);
  if (!parsed) return fail(parsed.error());
  const auto* options = std::get_if<plan::Options>(&*parsed);
  if (options == nullptr) return 0;
  auto plan = plan::make_plan(*options, machine, "run");
  if (!plan) return fail(plan.error());
  std::fputs(cli::dry_run(*plan, machine, {options->program.program}).c_str(), stdout);
}
