#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::plan {

/// Reads SLURM's variables out of an environment, with errors that name the variable. An empty one counts as unset.
class SlurmVariables {
 public:
  /// The environment has to outlive this object.
  explicit SlurmVariables(const std::map<std::string, std::string>& environment) : environment_(environment) {}

  [[nodiscard]] std::optional<std::string> text(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> text(const std::string& name, const std::string& otherwise) const;
  [[nodiscard]] Result<std::int64_t> number(const std::string& name, std::int64_t otherwise) const;
  [[nodiscard]] Result<std::vector<std::string>> nodes(const std::string& name) const;
  /// One number for each of so many nodes; 1 each where nothing is said.
  [[nodiscard]] Result<std::vector<int>> tasks(const std::string& name, std::size_t nodes) const;

 private:
  const std::map<std::string, std::string>& environment_;
};

}  // namespace taas::plan
