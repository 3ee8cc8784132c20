#include "storage/publishing/staged_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>

#include "base/folders/beneath.hpp"
#include "base/ids.hpp"

namespace taas::storage {
namespace {

void list_below(const HeldFolder& folder, const std::string& prefix, FilesBelow& found) {
  auto entries = folder.entries();
  if (!entries) return void(found.unread.emplace(prefix, entries.error()));
  for (const auto& [leaf, is_folder] : *entries) {
    auto name = prefix.empty() ? leaf : prefix + "/" + leaf;
    if (is_folder) {
      auto inner = folder.folder(leaf);
      const bool gone = !inner && inner.error().system_errno == ENOENT;
      if (inner) list_below(*inner, name, found);
      if (!inner && !gone) found.unread.emplace(name, inner.error());
    }
    (is_folder ? found.folders : found.names).push_back(std::move(name));
  }
}

bool is_this_file(const PlaceBelow& place, const FileState& state) {
  struct stat found {};
  return ::fstatat(place.folder.get(), place.name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0 &&
         found.st_dev == state.device && found.st_ino == state.inode;
}

/// Whether a name leads to a file can only be told for sure once nobody else can give it to another one: it is moved
/// aside first, and comes back if it is not to be removed.
template <class Predicate>
bool remove_aside(const HeldFolder& folder, const std::string& name, Predicate may_go) {
  auto place = open_place_below(folder.descriptor(), name, Missing::kRefuse);
  if (!place) return false;
  const int within = place->folder.get();
  const auto former = std::exchange(place->name, ".removing-" + random_hex(8));
  if (::renameat(within, former.c_str(), within, place->name.c_str()) != 0) return false;
  if (may_go(*place)) return ::unlinkat(within, place->name.c_str(), 0) == 0;
  ::renameat2(within, place->name.c_str(), within, former.c_str(), RENAME_NOREPLACE);
  return false;
}

/// Removing one of several names of a file changes its state, and nothing else of it.
class Remover {
 public:
  Remover(const HeldFolder& staging, Refusal refusal) : staging_(staging), refusal_(refusal) {}

  void remove(const std::string& name, const FileState& published) {
    if (auto file = StagedFile::open(staging_, name, refusal_)) {
      bool removed = is_same(file->state(), published) && remove_if_same(staging_, name, *file);
      if (removed) shortened_.insert(published.inode);
    } else if (auto link = link_state(staging_, name); link && *link == published) {
      remove_aside(staging_, name, [&](const PlaceBelow& aside) { return is_this_file(aside, *link); });
    }
  }

 private:
  [[nodiscard]] bool is_same(FileState staged, const FileState& published) const {
    if (shortened_.contains(staged.inode)) staged.changed_ns = published.changed_ns;
    return staged == published;
  }

  const HeldFolder& staging_;
  Refusal refusal_;
  std::set<std::uint64_t> shortened_;  // files that have lost one of their names here
};

}  // namespace

FilesBelow files_below(const HeldFolder& folder) {
  FilesBelow found;
  list_below(folder, "", found);
  return found;
}

bool remove_if_same(const HeldFolder& folder, const std::string& name, const StagedFile& file) {
  using Writers = StagedFile::Writers;
  if (file.writers() == Writers::kOpen) return false;
  return remove_aside(folder, name, [&](const PlaceBelow& aside) {
    return is_this_file(aside, file.state()) && (file.writers() == Writers::kUnknown || file.still_unwritten());
  });
}

void remove_published(const HeldFolder& staging, const std::map<std::string, FileState>& published, Refusal refusal) {
  Remover remover(staging, refusal);
  for (const auto& [name, state] : published) remover.remove(name, state);
  for (const auto& folder : files_below(staging).folders) staging.remove_folder(folder);
}

}  // namespace taas::storage
