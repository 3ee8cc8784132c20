// The only file that includes toml++.
#include "parse/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

// What toml++ takes for certain is not so for every text: a key that begins with a wrong letter is an assertion that
// fails, and undefined behaviour with NDEBUG, before the error that follows. Without both the error is found.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "parse/suggestion.hpp"

namespace taas::cli {
namespace {

Error error_at(const toml::source_region& place, std::string_view what) {
  return usage_error(fmt::format("line {}: {}", place.begin.line, what));
}

/// As it would stand on the command line; nothing for what cannot stand there, such as a date.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = node.as_boolean()) return std::string(truth->get() ? "true" : "false");
  return std::nullopt;
}

Result<const Flag*> find_option(std::string_view name) {
  const auto* flag = find_flag(name);
  if (flag == nullptr) {
    auto nearest = nearest_flag(name);
    auto hint = nearest.empty() ? std::string() : fmt::format("; did you mean {}?", nearest.substr(2));
    return usage_error(fmt::format("{}: no such option{}", name, hint));
  }
  if (flag->origin == Flag::Origin::kInternal || flag->name == "config" || flag->name == "help" ||
      flag->name == "version" || flag->name == "print-completion") {
    return usage_error(fmt::format("{}: only for the command line", name));
  }
  return flag;
}

Result<Values> read_list(const Flag& flag, const toml::array& list) {
  Values values;
  for (const auto& item : list) {
    auto text = item.is_boolean() ? std::nullopt : text_of(item);
    if (!text) return usage_error("a list of texts or numbers is wanted");
    values.push_back(std::move(*text));
  }
  if (flag.kind == Flag::Kind::kCommaList) return Values{fmt::format("{}", fmt::join(values, ","))};
  if (values.empty()) return usage_error("the list is empty");
  return values;
}

/// Texts are taken for any option, as those of PET_* are.
Result<Values> read_values(const Flag& flag, const toml::node& node) {
  bool is_list = flag.kind == Flag::Kind::kCommaList || flag.kind == Flag::Kind::kRepeatable;
  if (const auto* list = node.as_array(); list != nullptr && is_list) return read_list(flag, *list);
  if (!flag.takes_value() && !node.is_boolean() && !node.is_string()) return usage_error("true or false is wanted");
  auto text = text_of(node);
  if (!text || (flag.takes_value() && node.is_boolean())) {
    return usage_error(fmt::format("{} is wanted", is_list ? "a list, a text or a number" : "one text or number"));
  }
  return Values{std::move(*text)};
}

Result<> add(std::string_view name, const toml::node& node, Given& given) {
  if (node.is_table()) return error_at(node.source(), fmt::format("[{}]: sections are not known", name));
  auto flag = find_option(name);
  if (!flag) return error_at(node.source(), flag.error().message);
  auto values = read_values(**flag, node);
  if (!values) return error_at(node.source(), fmt::format("{}: {}", name, values.error().message));
  if (given.emplace((*flag)->name, std::move(*values)).second) return {};
  return error_at(node.source(), fmt::format("{}: given twice", name));  // with a dash, and with an underscore
}

}  // namespace

Result<Given> read_config(const std::string& text) {
  auto parsed = toml::parse(text);
  if (!parsed) {
    const auto& error = parsed.error();
    return error_at(error.source(),
                    fmt::format("not valid TOML, in which texts stand in quotes: {}", error.description()));
  }
  Given given;
  for (const auto& [key, node] : parsed.table()) {
    if (auto added = add(key.str(), node, given); !added) return added.error();
  }
  return given;
}

}  // namespace taas::cli
