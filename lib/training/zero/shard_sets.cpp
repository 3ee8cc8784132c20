#include "training/zero/shard_sets.hpp"

#include <filesystem>
#include <iomanip>
#include <random>
#include <set>
#include <sstream>
#include <system_error>

#include "taas/error.hpp"
#include "training/checkpoint/atomic_file.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/zero/shard_values.hpp"

namespace taas {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournal = "taas save under way";

/// No two saves have the same name, whoever else writes to the directory.
std::string name_of_save(std::int64_t epoch) {
  std::random_device random;
  std::ostringstream name;
  name << kSetPrefix << epoch << '-' << std::hex << std::setfill('0') << std::setw(8) << random() << std::setw(8)
       << random();
  return name.str();
}

void make_folder(const std::string& path) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) throw CheckpointError("cannot make the folder " + path + ": " + failure.message());
}

}  // namespace

std::string ShardDirectory::shard(const ShardSet& set, std::int64_t rank) const {
  return folder(set) + "/shard-" + std::to_string(rank) + "-of-" + std::to_string(set.world_size) + ".pt";
}

ShardSet ShardDirectory::begin(std::int64_t epoch, std::int64_t world_size, const std::optional<ShardSet>& good) const {
  make_folder(path_);
  auto sets = remove_all_but(good);
  if (good) sets.push_back(*good);
  sets.push_back({name_of_save(epoch), world_size});
  auto names = plain_list();
  for (const auto& set : sets) names.push_back(value_of(set));
  auto value = described(kJournal);
  value.insert("sets", names);
  publish_value(journal(), value);
  make_folder(folder(sets.back()));
  sync_folder_of(folder(sets.back()));
  return sets.back();
}

void ShardDirectory::clean(const std::optional<ShardSet>& good) const {
  std::error_code ignored;
  if (remove_all_but(good).empty()) fs::remove(journal(), ignored);
}

std::vector<ShardSet> ShardDirectory::sets_in_journal() const {
  std::error_code unreadable;
  if (!fs::exists(journal(), unreadable)) return {};
  return reading(journal(), [&] {
    std::vector<ShardSet> sets;
    const auto journalled = checked_format(unpickle(journal()), kJournal, journal());
    for (const auto& set : journalled.at("sets").toListRef()) sets.push_back(set_from(set));
    return sets;
  });
}

/// Those that could not be removed.
std::vector<ShardSet> ShardDirectory::remove_all_but(const std::optional<ShardSet>& good) const {
  std::vector<ShardSet> left;
  for (const auto& set : sets_in_journal()) {
    if (set != good && !remove(set)) left.push_back(set);
  }
  return left;
}

/// Only what a save has made, also if it was cut off. The folder stays where somebody has put something else into it.
bool ShardDirectory::remove(const ShardSet& set) const {
  std::set<std::string> own{fs::path(checkpoint(set)).filename()};
  for (std::int64_t rank = 0; rank < set.world_size; ++rank) own.insert(fs::path(shard(set, rank)).filename());
  std::error_code unreadable, failure;
  bool removed = true;
  for (const auto& entry : fs::directory_iterator(folder(set), unreadable)) {
    const auto name = entry.path().filename().string();
    if (!own.contains(name.substr(0, name.find(kTemporarySuffix)))) continue;
    fs::remove(entry.path(), failure);
    removed = removed && !failure;
  }
  fs::remove(folder(set), failure);
  return removed && (!unreadable || unreadable == std::errc::no_such_file_or_directory);
}

}  // namespace taas
