#include "plan/preload.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "plan/python_command.hpp"
#include "plan/python_sources.hpp"

namespace taas::plan {
namespace {

constexpr const char* kDefaultModule = "torch";

PreloadChoice none(std::string why, bool is_news) { return {{}, 0, std::move(why), is_news}; }

bool is_module_name(std::string_view name) {
  if (name.empty() || name.starts_with('.') || name.ends_with('.')) return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == name.npos;
}

/// Where nobody asked for it: is it worth it?
std::optional<PreloadChoice> why_not_by_itself(const Options& options, int ranks, const PythonCommand& command,
                                               const ProgramText& text) {
  if (ranks < 2 && options.supervision.max_restarts == 0) return none("one rank that is started once", false);
  bool guess = !text.known && command.kind != PythonCommand::Kind::kScript;  // an installed module
  if (!text.trains && !guess && text.known) return none("the program does not seem to use torch", false);
  return std::nullopt;
}

}  // namespace

Result<> check_preload(std::string_view value) {
  if (value == kPreloadAuto || value == kPreloadNone) return {};
  for (auto name : split(value, ',')) {
    if (!is_module_name(name)) {
      return usage_error(fmt::format("\"{}\" is no module: auto, none, or names like torch,torch.distributed", name));
    }
  }
  return {};
}

PreloadChoice choose_preload(const Options& options, const std::vector<std::string>& words, int ranks,
                             const ReadSource& read) {
  const auto& wanted = options.program.preload;
  if (wanted == kPreloadNone) return none("--preload none", false);
  bool asked = wanted != kPreloadAuto;
  auto command = parse_python_command(words);
  if (!command) return none("the program is not one that Python runs from a file or module", asked);
  auto text = read_program(*command, read);
  if (!asked) {
    if (auto reason = why_not_by_itself(options, ranks, *command, text)) return *reason;
  }
  if (!text.variables.empty()) {
    return none(fmt::format("the program sets {} itself, which libraries read when they are imported",
                            fmt::join(text.variables, ", ")),
                true);
  }
  PreloadChoice choice{{}, command->options, "", false};
  if (!asked) choice.modules.emplace_back(kDefaultModule);
  for (auto name : split(asked ? std::string_view(wanted) : std::string_view(), ',')) {
    if (!name.empty()) choice.modules.emplace_back(name);
  }
  return choice;
}

}  // namespace taas::plan
