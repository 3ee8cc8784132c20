#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/ranks/rank_placement.hpp"
#include "node/process/rank_process.hpp"
#include "node/process/rank_source.hpp"
#include "plan/environment/rank_environment.hpp"
#include "proc/machine/numa.hpp"
#include "storage/run_directory.hpp"

namespace taas::node {

/// What is the same for the ranks of all generations.
struct RankStartsOptions {
  plan::LaunchSettings settings;
  plan::Machine machine;               ///< its environment is what ranks inherit
  std::vector<std::string> command;    ///< what every rank runs
  bool inherits_stdin = false;         ///< rank 0 reads the launcher's standard input
  const Ruleset* read_only = nullptr;  ///< for ranks other than 0; null: they may write anywhere
  std::optional<std::uint64_t> open_files_limit;
};

/// Of one rank's files; none where its folder cannot be made.
struct RankPaths {
  HeldPath out;
  HeldPath err;
  HeldPath error;
  std::string output = {};  ///< TAAS_OUTPUT_DIR where it is this rank's alone
};

/// What one generation of a node writes to.
struct GenerationPaths {
  HeldPath flight_records;
  std::vector<RankPaths> ranks;  ///< in the order of their places
  std::string trouble = {};      ///< why one of them has no file; empty: all have
};

/// Makes the folders that are missing.
GenerationPaths make_paths(const storage::RunDirectory& folder, Generation generation,
                           const std::vector<RankPlace>& places, plan::RankFiles rank_files);

/// The processors of each rank with --numa-binding; empty without it.
Result<std::vector<Processors>> bind_ranks(const plan::LaunchSettings& settings, const plan::Machine& machine,
                                           const std::vector<RankPlace>& places);

/// What the ranks of one generation on this node are started with.
class RankStarts {
 public:
  explicit RankStarts(RankStartsOptions options) : options_(std::move(options)) {}

  Result<> begin(Generation generation, plan::RunAddresses addresses, std::vector<RankPlace> places);
  void use(GenerationPaths paths);

  [[nodiscard]] const RankStartsOptions& options() const { return options_; }
  [[nodiscard]] const std::vector<RankPlace>& places() const { return places_; }
  /// Of the rank at this index of places().
  [[nodiscard]] RankStart describe(std::size_t index) const;
  [[nodiscard]] CommonEnvironment common() const;

 private:
  [[nodiscard]] std::vector<plan::Variable> own_variables(std::size_t index) const;

  RankStartsOptions options_;
  Generation generation_{-1};
  plan::RunAddresses addresses_;
  std::vector<RankPlace> places_;
  std::vector<Processors> processors_;  // of each place; empty: none is bound
  HeldPath flight_records_;
  std::vector<RankPaths> paths_;
};

}  // namespace taas::node
