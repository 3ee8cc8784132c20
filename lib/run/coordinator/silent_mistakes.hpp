#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/events/events.hpp"
#include "run/events/training_facts.hpp"

namespace taas::run {

/// Finds mistakes that make no rank fail and that none of them can see alone, in what the ranks of the last generation
/// have told. docs/failures.md has the rules. Pure.
class SilentMistakes {
 public:
  void see(const Event& event);
  void add(Rank rank, TrainingFacts facts) { facts_[rank] = std::move(facts); }

  /// One for each kind of mistake, with the way out.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Told {
    Rank rank;
    const TrainingFacts* facts;
  };
  using Found = std::optional<std::string>;

  [[nodiscard]] std::vector<std::vector<Told>> by_node() const;
  [[nodiscard]] std::string name(const std::vector<Rank>& ranks) const;
  [[nodiscard]] Found without_group() const;
  [[nodiscard]] Found same_samples() const;
  [[nodiscard]] Found data_parallel(const std::vector<Told>& node) const;
  [[nodiscard]] Found one_gpu(const std::vector<Told>& node) const;
  [[nodiscard]] Found same_file(const std::vector<Told>& node) const;

  std::vector<NodeIndex> node_of_rank_;
  std::vector<std::string> node_names_;
  bool store_reached_ = false;
  std::size_t ended_well_ = 0;
  std::map<Rank, TrainingFacts> facts_;
};

}  // namespace taas::run
