#include "plan/launch_mode/slurm_variables.hpp"

#include <fmt/format.h>

#include <charconv>

#include "plan/launch_mode/nodelist.hpp"

namespace taas::plan {

std::optional<std::string> SlurmVariables::text(const std::string& name) const {
  auto found = environment_.find(name);
  if (found == environment_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<std::string> SlurmVariables::text(const std::string& name, const std::string& otherwise) const {
  auto value = text(name);
  return value ? value : text(otherwise);
}

Result<std::int64_t> SlurmVariables::number(const std::string& name, std::int64_t otherwise) const {
  auto value = text(name);
  if (!value) return otherwise;
  std::int64_t number = 0;
  const char* end = value->data() + value->size();
  auto [stopped, problem] = std::from_chars(value->data(), end, number);
  if (problem == std::errc() && stopped == end && number >= 0) return number;
  return usage_error(fmt::format("{}={}: not a number", name, *value));
}

Result<std::vector<std::string>> SlurmVariables::nodes(const std::string& name) const {
  auto value = text(name);
  if (!value) return std::vector<std::string>();
  auto names = expand_nodelist(*value);
  if (!names) return std::move(names).error().with(name);
  return names;
}

Result<std::vector<int>> SlurmVariables::tasks(const std::string& name, std::size_t nodes) const {
  auto value = text(name);
  if (!value) return std::vector<int>(nodes, 1);
  auto counts = expand_task_counts(*value);
  if (!counts) return std::move(counts).error().with(name);
  if (counts->size() == nodes) return counts;
  return usage_error(fmt::format("{}={}: {} nodes, and the list of nodes has {}", name, *value, counts->size(), nodes));
}

}  // namespace taas::plan
