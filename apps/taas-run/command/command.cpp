#include "command/command.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cstdio>
#include <string_view>

#include "base/text.hpp"

namespace taas::cli {
namespace {

/// "logs: --folow: no such option; did you mean --follow?"
Error unexpected(const CLI::App& app, const std::string& name, const std::string& argument) {
  const auto option = argument.substr(0, argument.find('='));
  if (!option.starts_with('-')) {
    return usage_error_with_fix(fmt::format("{}: {}: one word too many", name, argument),
                                fmt::format("taas-run {} --help says what it takes", name));
  }
  std::vector<std::string> spelled;
  for (const auto* known : app.get_options()) {
    for (const auto& long_name : known->get_lnames()) spelled.push_back("--" + long_name);
  }
  const std::vector<std::string_view> names(spelled.begin(), spelled.end());
  const auto meant = nearest_word(option, names);
  const auto what = fmt::format("{}: {}: no such option", name, option);
  if (!meant.empty()) return usage_error_with_fix(what, fmt::format("did you mean {}?", meant));
  return usage_error_with_fix(what, fmt::format("taas-run {} --help lists them", name));
}

}  // namespace

bool print_now(const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

Result<std::optional<int>> Subcommand::parse(const std::vector<std::string>& arguments) {
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    return std::optional<int>(print_now(app.help()) ? 0 : 1);
  } catch (const CLI::ExtrasError& wrong) {
    const auto extras = app.remaining();
    return unexpected(app, name_, extras.empty() ? wrong.what() : extras.front());
  } catch (const CLI::ParseError& wrong) {
    std::string what = wrong.what();
    const bool sentence = what.size() > 1 && std::islower(static_cast<unsigned char>(what[1])) != 0;
    if (sentence) what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
    return usage_error(fmt::format("{}: {}", name_, what));
  }
  return std::optional<int>();
}

}  // namespace taas::cli
