#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace taas {

/// The files of one save: a folder of this name, with one shard for each of so many ranks.
struct ShardSet {
  std::string name;
  std::int64_t world_size = 0;

  bool operator==(const ShardSet&) const = default;
};

/// A directory of sets of shards. The manifest names the good set. While another one is written, a journal names both,
/// so that the next save can remove what a killed one has left: what the journal names and the manifest does not.
class ShardDirectory {
 public:
  explicit ShardDirectory(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string manifest() const { return path_ + "/manifest.pt"; }
  /// What is not the optimizer's state.
  [[nodiscard]] std::string checkpoint(const ShardSet& set) const { return folder(set) + "/checkpoint.pt"; }
  [[nodiscard]] std::string shard(const ShardSet& set, std::int64_t rank) const;

  // For one rank. These throw CheckpointError, which names the path.

  /// A set of its own for a save, with an empty folder that survives a power cut; `good` is the manifest's.
  ShardSet begin(std::int64_t epoch, std::int64_t world_size, const std::optional<ShardSet>& good) const;
  /// Removes the files of all sets that the journal names but for `good`, and then the journal.
  void clean(const std::optional<ShardSet>& good) const;

 private:
  [[nodiscard]] std::string folder(const ShardSet& set) const { return path_ + "/" + set.name; }
  [[nodiscard]] std::string journal() const { return path_ + "/saving.pt"; }
  [[nodiscard]] std::vector<ShardSet> sets_in_journal() const;
  [[nodiscard]] std::vector<ShardSet> remove_all_but(const std::optional<ShardSet>& good) const;
  [[nodiscard]] bool remove(const ShardSet& set) const;

  std::string path_;
};

}  // namespace taas
