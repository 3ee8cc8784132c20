#include "parse/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "base/version.hpp"
#include "documents/completion.hpp"
#include "documents/flags_page.hpp"
#include "documents/man_page.hpp"
#include "flags/flags.hpp"
#include "parse/arguments.hpp"
#include "parse/boundary.hpp"
#include "parse/config_file.hpp"
#include "parse/refused.hpp"

namespace taas::cli {
namespace {

/// A place that values come from, and how errors name one of them: "--gpus x", "PET_NNODES=x", "run.toml: gpus = x".
struct Source {
  Given given;
  std::function<std::string(std::string_view flag, const std::string& value)> describe;
};

/// An empty value would not be seen.
std::string quoted_if_empty(const std::string& value) { return value.empty() ? "\"\"" : value; }

using Sources = std::vector<Source>;  // the weakest first

constexpr const char* kShutdownTimeout = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";  // torchrun reads it as well

/// An empty variable counts as unset.
Given read_pet(const Environment& environment) {
  Given given;
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      if (flag.origin != Flag::Origin::kTorchrun) continue;
      auto value = value_of(environment, pet_variable(flag.name));
      if (!trim(value).empty()) given.emplace(flag.name, Values{value});
    }
  }
  return given;
}

/// What is refused as a flag is refused as a variable.
Result<> check_refused_variables(const Environment& environment) {
  for (auto name : refused_variables()) {
    auto variable = pet_variable(name);
    if (value_of(environment, variable).empty()) continue;
    return usage_error(fmt::format("{} {}", variable, *why_refused(name)));
  }
  return {};
}

Given read_other_variables(const Environment& environment) {
  auto value = value_of(environment, kShutdownTimeout);
  if (value.empty()) return {};
  return {{"shutdown-timeout", {value}}};
}

/// The file of --config, or nothing.
Result<Given> read_config_file(const Given& command_line, const FileReader& read_file) {
  auto config = command_line.find("config");
  if (config == command_line.end()) return Given();
  const auto& path = config->second.back();
  auto text = read_file(path);
  if (!text) return std::move(text).error().with("--config");
  auto given = read_config(*text);
  if (!given) return std::move(given).error().with(path);
  return given;
}

Result<Sources> collect(Given command_line, const Environment& environment, const FileReader& read_file) {
  auto config = read_config_file(command_line, read_file);
  if (!config) return config.error();
  auto path = command_line.contains("config") ? command_line["config"].back() : std::string();
  return Sources{
      {read_other_variables(environment),
       [](auto, const auto& value) { return fmt::format("{}={}", kShutdownTimeout, value); }},
      {std::move(*config),
       [path](auto flag, const auto& value) { return fmt::format("{}: {} = {}", path, flag, quoted_if_empty(value)); }},
      {read_pet(environment),
       [](auto flag, const auto& value) { return fmt::format("{}={}", pet_variable(flag), value); }},
      {std::move(command_line),
       [](auto flag, const auto& value) { return fmt::format("--{} {}", flag, quoted_if_empty(value)); }}};
}

Values trimmed(Values values) {
  for (auto& value : values) value = std::string(trim(value));
  return values;
}

/// Each flag once, from the strongest source that has it: a wrong value that is overridden does no harm.
Result<> apply_all(const Sources& sources, plan::Options& options) {
  for (auto source = sources.begin(); source != sources.end(); ++source) {
    for (const auto& [name, values] : source->given) {
      bool overridden = std::any_of(source + 1, sources.end(),
                                    [&name = name](const Source& stronger) { return stronger.given.contains(name); });
      if (overridden) continue;
      const auto& flag = *find_flag(name);
      auto applied = flag.apply(options, flag.keeps_blanks() ? values : trimmed(values));
      if (!applied) return std::move(applied).error().with(source->describe(name, values.back()));
    }
  }
  return {};
}

Result<> read_hostfile(plan::NodesOptions& nodes, const FileReader& read_file) {
  if (!nodes.hostfile) return {};
  auto text = read_file(*nodes.hostfile);
  if (!text) return std::move(text).error().with("--hostfile");
  nodes.hostfile_text = std::move(*text);
  return {};
}

/// What a flag asks to print instead of starting anything; empty when there is no such flag.
Result<std::string> text_to_print(const Given& command_line) {
  if (command_line.contains("help")) return help_text();
  if (command_line.contains("version")) return fmt::format("taas-run {}\n", kLauncherVersion);
  if (command_line.contains("print-man-page")) return man_page();
  if (command_line.contains("print-flags-page")) return flags_page();
  auto shell = command_line.find("print-completion");
  if (shell == command_line.end()) return std::string();
  auto script = completion(shell->second.back());
  if (!script) return std::move(script).error().with("--print-completion " + shell->second.back());
  return script;
}

Result<ParseOutcome> parse_lines(std::span<const std::string> arguments, const Environment& environment,
                                 const FileReader& read_file) {
  auto boundary = find_program(arguments);
  if (!boundary) return boundary.error();
  auto command_line = read_arguments(arguments.first(boundary->options_end));
  if (!command_line) return command_line.error();
  auto text = text_to_print(*command_line);
  if (!text) return text.error();
  if (!text->empty()) return PrintAndExit{std::move(*text)};
  if (command_line->contains("quiet") && command_line->contains("verbose")) {
    return usage_error("--quiet and --verbose exclude each other");
  }
  if (auto available = check_refused_variables(environment); !available) return available.error();
  auto sources = collect(std::move(*command_line), environment, read_file);
  if (!sources) return sources.error();
  plan::Options options;
  if (auto applied = apply_all(*sources, options); !applied) return applied.error();
  if (auto read = read_hostfile(options.nodes, read_file); !read) return read.error();
  auto program = arguments.subspan(boundary->program_begin);
  if (options.as_agent) return options;  // the coordinator says what to run
  if (program.empty()) return usage_error("no program given; for example: taas-run --gpus 8 train");
  options.program.program = program.front();
  options.program.arguments.assign(program.begin() + 1, program.end());
  return options;
}

}  // namespace

Result<ParseOutcome> parse(std::span<const std::string> arguments, const Environment& environment,
                           const FileReader& read_file) {
  auto outcome = parse_lines(arguments, environment, read_file);
  if (outcome) return outcome;
  const auto& error = outcome.error();  // it quotes what users typed
  return Error{ErrorCode::kUsage, error.system_errno, printable(error.message)};
}

}  // namespace taas::cli
