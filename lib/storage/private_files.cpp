#include "storage/private_files.hpp"

#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace taas::storage {
namespace {

constexpr int kMostDepth = 256;  // of folders that ranks have made: a stack and descriptors have an end

/// Of the folder rank-0003.
std::optional<Rank> rank_of(const std::string& folder) {
  constexpr std::string_view kPrefix = "rank-";
  int rank = 0;
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  const auto* end = folder.data() + folder.size();
  const auto [rest, error] = std::from_chars(folder.data() + kPrefix.size(), end, rank);
  return error == std::errc() && rest == end ? std::optional(Rank{rank}) : std::nullopt;
}

/// What one rank wrote, beside what is published.
class Sorting {
 public:
  Sorting(Rank rank, const HeldFolder& published, SortedPrivateFiles& sorted)
      : rank_(rank), published_(published), sorted_(sorted) {}

  /// `name` is the folder's, relative to the rank's output, and ends with a slash unless it is that output.
  void sort(const HeldFolder& folder, const std::string& name, int depth = 0) {
    const auto entries = folder.entries();
    if (!entries) return;
    for (const auto& entry : *entries) {
      if (!entry.is_folder) {
        sort_file(folder, entry.name, name + entry.name);
      } else if (const auto inner = folder.folder(entry.name); inner && depth < kMostDepth) {
        sort(*inner, name + entry.name + "/", depth + 1);
        folder.remove_folder(entry.name);  // if it is empty
      }
    }
  }

 private:
  void sort_file(const HeldFolder& folder, const std::string& own_name, const std::string& name) {
    const bool dropped = published_.has(name) && folder.remove(own_name);
    (dropped ? sorted_.dropped : sorted_.kept).push_back(rank_);
  }

  Rank rank_;
  const HeldFolder& published_;
  SortedPrivateFiles& sorted_;
};

/// A folder that is missing holds nothing; anything else that is in its way is said.
std::optional<HeldFolder> open_or_say(const HeldFolder& above, const std::string& name, SortedPrivateFiles& sorted) {
  auto folder = above.folder(name);
  if (folder) return std::move(*folder);
  if (folder.error().system_errno != ENOENT) sorted.troubles.push_back(folder.error().message);
  return std::nullopt;
}

}  // namespace

SortedPrivateFiles sort_private_files(const RunDirectory& run) {
  SortedPrivateFiles sorted;
  const auto published = open_or_say(run.held(), "output", sorted);
  const auto all = open_or_say(run.held(), "private", sorted);
  if (!all || !published) return sorted;
  const auto entries = all->entries();
  for (const auto& entry : entries ? *entries : std::vector<HeldFolder::Entry>()) {
    const auto rank = rank_of(entry.name);
    const auto own = rank ? open_or_say(*all, entry.name, sorted) : std::nullopt;
    if (!own) continue;
    if (const auto output = open_or_say(*own, "output", sorted)) Sorting(*rank, *published, sorted).sort(*output, "");
    if (own->remove_folder("output")) all->remove_folder(entry.name);
  }
  run.held().remove_folder("private");
  return sorted;
}

}  // namespace taas::storage
