#include "base/environment/environment.hpp"

namespace taas {

std::optional<std::pair<std::string_view, std::string_view>> split_assignment(std::string_view text) {
  auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::nullopt;
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

std::vector<std::string> assignments(const Environment& environment) {
  std::vector<std::string> list;
  list.reserve(environment.size());
  for (const auto& [name, value] : environment) list.push_back(name + "=" + value);
  return list;
}

std::vector<std::string> assignments(Environment environment,
                                     const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& [name, value] : changes) environment.insert_or_assign(name, value);
  return assignments(environment);
}

std::optional<std::string> find_variable(const Environment& environment, const std::string& name) {
  auto found = environment.find(name);
  return found == environment.end() ? std::nullopt : std::optional(found->second);
}

std::string value_of(const Environment& environment, const std::string& name, std::string_view otherwise) {
  auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? std::string(otherwise) : found->second;
}

}  // namespace taas
