#include "storage/private_files.hpp"

#include <charconv>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace taas::storage {
namespace {

namespace fs = std::filesystem;
using Failure = std::error_code;

/// Of the folder rank-0003.
std::optional<Rank> rank_of(const fs::path& folder) {
  constexpr std::string_view kPrefix = "rank-";
  const auto name = folder.filename().string();
  int rank = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, rank);
  return error == Failure() && rest == end ? std::optional(Rank{rank}) : std::nullopt;
}

/// Folders come after what is in them.
std::vector<fs::path> entries_below(const fs::path& folder) {
  std::vector<fs::path> entries;
  Failure failure;
  for (fs::recursive_directory_iterator next(folder, failure), end; !failure && next != end; next.increment(failure)) {
    entries.push_back(next->path());
  }
  return {entries.rbegin(), entries.rend()};
}

bool is_folder(const fs::path& path) {
  Failure failure;
  return fs::symlink_status(path, failure).type() == fs::file_type::directory;
}

bool is_there(const fs::path& path) {
  Failure failure;
  const auto type = fs::symlink_status(path, failure).type();
  return type != fs::file_type::not_found && type != fs::file_type::none && type != fs::file_type::directory;
}

void sort_rank(Rank rank, const fs::path& output, const fs::path& published, SortedPrivateFiles& sorted) {
  for (const auto& entry : entries_below(output)) {
    Failure failure;
    if (is_folder(entry)) {
      fs::remove(entry, failure);  // an empty one
    } else if (is_there(published / entry.lexically_relative(output)) && fs::remove(entry, failure)) {
      sorted.dropped.push_back(rank);
    } else {
      sorted.kept.push_back(rank);
    }
  }
}

}  // namespace

SortedPrivateFiles sort_private_files(const RunDirectory& folder) {
  SortedPrivateFiles sorted;
  Failure failure;
  for (fs::directory_iterator next(folder.private_files(), failure), end; !failure && next != end;
       next.increment(failure)) {
    const auto rank = rank_of(next->path());
    if (!rank) continue;
    const auto output = next->path() / "output";
    sort_rank(*rank, output, folder.files(), sorted);
    Failure not_empty;
    if (fs::remove(output, not_empty)) fs::remove(next->path(), not_empty);
  }
  Failure not_empty;
  fs::remove(folder.private_files(), not_empty);
  return sorted;
}

}  // namespace taas::storage
