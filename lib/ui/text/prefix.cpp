#include "ui/text/prefix.hpp"

#include <cctype>
#include <optional>

#include "ui/text/rank_set.hpp"

namespace taas::ui {
namespace {

std::optional<std::string> field(std::string_view name, const PrefixFields& fields) {
  if (name == "role_name") return fields.role_name;
  if (name == "local_rank") return std::to_string(fields.local_rank);
  if (name == "rank") return std::to_string(fields.rank.value);
  if (name == "hostname") return fields.hostname;
  return std::nullopt;
}

bool is_name(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_'; }

/// The name after a dollar sign, its braces included; empty: there is none.
std::string_view placeholder(std::string_view text) {
  bool braces = !text.empty() && text.front() == '{';
  std::size_t end = braces ? 1 : 0;
  while (end < text.size() && is_name(text[end])) ++end;
  if (!braces) return text.substr(0, end);
  return end < text.size() && text[end] == '}' ? text.substr(0, end + 1) : std::string_view{};
}

std::string_view without_braces(std::string_view name) {
  return name.size() >= 2 && name.front() == '{' ? name.substr(1, name.size() - 2) : name;
}

}  // namespace

std::string expand_prefix(std::string_view pattern, const PrefixFields& fields) {
  std::string text;
  while (!pattern.empty()) {
    auto dollar = pattern.find('$');
    text += pattern.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    pattern.remove_prefix(dollar + 1);
    if (!pattern.empty() && pattern.front() == '$') {
      text += '$';
      pattern.remove_prefix(1);
      continue;
    }
    auto name = placeholder(pattern);
    auto value = field(without_braces(name), fields);
    text += value ? *value : "$" + std::string(name);
    pattern.remove_prefix(name.size());
  }
  return text;
}

std::string rank_prefix(const std::vector<Rank>& ranks) { return "[" + format_rank_set(ranks) + "] "; }

}  // namespace taas::ui
