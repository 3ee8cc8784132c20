#include "node/ranks/protection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace taas::node {
namespace {

namespace fs = std::filesystem;

bool is_needed(const plan::OutputOptions& output) {
  return !output.protected_directories.empty() || output.ranks == plan::RankFiles::kNone;
}

/// Links are followed, as the rules do.
bool is_in(const std::string& path, const std::string& directory) {
  std::error_code failure;
  const auto inner = fs::canonical(path, failure), outer = fs::canonical(directory, failure);
  return !failure && std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

Result<std::optional<Ruleset>> rules_of(std::vector<std::string> read_only, std::vector<std::string> but_for) {
  auto rules = make_read_only(read_only, but_for);
  if (!rules) return rules.error();
  return std::optional<Ruleset>(std::move(*rules));
}

}  // namespace

/// What ranks write apart has to stay possible where the run's folder lies in a protected one.
Result<std::optional<Ruleset>> make_protection(const plan::OutputOptions& output, const storage::RunDirectory& folder) {
  if (!is_needed(output)) return std::nullopt;
  auto read_only = output.protected_directories;
  auto but_for = output.unprotected;
  const auto apart = folder.private_files();
  const bool inside =
      std::any_of(read_only.begin(), read_only.end(), [&](const auto& one) { return is_in(apart, one); });
  if (output.ranks == plan::RankFiles::kPrivate && inside) but_for.push_back(apart);
  if (output.ranks == plan::RankFiles::kNone) read_only.push_back(folder.staging());
  return rules_of(std::move(read_only), std::move(but_for));
}

Result<> check_protection(const plan::OutputOptions& output) {
  if (!is_needed(output)) return {};
  auto rules = rules_of(output.protected_directories, output.unprotected);
  if (!rules) return std::move(rules).error();
  return {};
}

std::string describe_protection(const plan::OutputOptions& output) {
  std::vector<std::string> parts;
  if (const auto& folders = output.protected_directories; !folders.empty()) {
    parts.push_back(fmt::format("--protect makes {} read-only", fmt::join(folders, ", ")));
  }
  if (output.ranks == plan::RankFiles::kNone) {
    parts.emplace_back("--rank-output none makes the folder of TAAS_OUTPUT_DIR read-only");
  }
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace taas::node
