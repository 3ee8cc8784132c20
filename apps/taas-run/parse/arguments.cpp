// The only file that includes CLI11.
#include "parse/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <vector>

#include "flags/help_words.hpp"
#include "parse/abbreviation.hpp"
#include "parse/boundary.hpp"
#include "parse/suggestion.hpp"

namespace taas::cli {
namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHelpColumn = 29;

/// Both spellings: "-t,--tee" and "--log-dir,--log_dir".
std::string spellings(const Flag& flag) {
  std::string underscored(flag.name);
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  auto names = fmt::format("--{}", flag.name);
  if (underscored != flag.name) names += ",--" + underscored;
  return flag.short_name == 0 ? names : fmt::format("-{},{}", flag.short_name, names);
}

/// The text in lines that fit, each but the first indented.
std::string wrap(const std::string& text, std::size_t indentation) {
  std::istringstream words(text);
  std::string wrapped;
  std::size_t column = indentation;
  for (std::string word; words >> word; column += word.size() + 1) {
    if (column + word.size() > kColumns && column > indentation) {
      wrapped += "\n" + std::string(indentation, ' ');
      column = indentation;
    } else if (column > indentation) {
      wrapped += ' ';
    }
    wrapped += word;
  }
  return wrapped;
}

/// One spelling a flag, and lines that fit the terminal: CLI11 lists all spellings and, in its older releases, does not
/// wrap.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool) const override {
    auto name = option->get_snames().empty() ? "    " : fmt::format("-{}, ", option->get_snames().front());
    name = fmt::format("  {}--{} {}", name, option->get_lnames().front(), option->get_type_name());
    auto gap =
        name.size() < kHelpColumn ? std::string(kHelpColumn - name.size(), ' ') : "\n" + std::string(kHelpColumn, ' ');
    return name + gap + wrap(option->get_description(), kHelpColumn) + "\n";
  }
  std::string make_group(std::string heading, bool positional, std::vector<const CLI::Option*> options) const override {
    auto text = heading + ":\n";
    for (const auto* option : options) text += make_option(option, positional);
    return text;
  }
  // Both are written for this width already: newer releases would fill them as paragraphs.
  std::string make_description(const CLI::App* app) const override { return app->get_description() + "\n"; }
  std::string make_footer(const CLI::App* app) const override { return app->get_footer() + "\n"; }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: taas-run [OPTIONS] PROGRAM [ARGUMENTS...]\n\n";
  }
};

using Options = std::map<std::string_view, CLI::Option*>;

Options add_options(CLI::App& app) {
  app.set_help_flag();
  Options options;
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      bool shown = flag.origin != Flag::Origin::kInternal;  // CLI11 leaves a group without a name out of the help
      auto* option = flag.takes_value() ? app.add_option(spellings(flag)) : app.add_flag(spellings(flag));
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->group(shown ? std::string(group.heading) : "");
      option->description(std::string(flag.help))->type_name(std::string(flag.value));
      options.emplace(flag.name, option);
    }
  }
  return options;
}

/// CLI11 takes "--role=" for a flag whose value follows; here the value is the empty text.
void add_option(std::string option, std::vector<std::string>& tokens) {
  bool empty_value = option.starts_with("--") && option.find('=') + 1 == option.size() &&
                     find_flag(std::string_view(option).substr(2, option.size() - 3))->takes_value();
  if (empty_value) option.pop_back();
  tokens.push_back(std::move(option));
  if (empty_value) tokens.emplace_back();
}

Result<std::vector<std::string>> reversed_tokens(std::span<const std::string> arguments) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto next = wants_next(arguments[i]);
    if (!next) return next.error();
    add_option(spelled_out(arguments[i]), tokens);
    if (*next && i + 1 < arguments.size()) tokens.push_back(arguments[++i]);
  }
  std::reverse(tokens.begin(), tokens.end());  // as CLI11 wants them
  return tokens;
}

}  // namespace

Result<Given> read_arguments(std::span<const std::string> arguments) try {
  CLI::App app;
  auto options = add_options(app);
  auto tokens = reversed_tokens(arguments);
  if (!tokens) return tokens.error();
  app.parse(std::move(*tokens));
  Given given;
  for (const auto& [name, option] : options) {
    if (option->count() > 0) given.emplace(name, option->results());
  }
  return given;
} catch (const CLI::Error& error) {
  return usage_error(error.what());
}

std::string help_text() {
  CLI::App app(wrap(fmt::format("taas-run {}: {}.", kSummary, kPrograms), 0));
  add_options(app);
  app.formatter(std::make_shared<HelpFormatter>());
  std::string commands;
  for (const auto& command : kCommands) {
    commands +=
        fmt::format("  {:<{}}{}\n", command.name, kHelpColumn - 2, wrap(std::string(command.help), kHelpColumn));
  }
  app.footer(fmt::format("\nCommands, in place of all this:\n{}\n{}\n\n  {}", commands, wrap(std::string(kSpelling), 0),
                         fmt::join(kExamples, "\n  ")));
  return app.help();
}

}  // namespace taas::cli
