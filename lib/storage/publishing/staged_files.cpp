#include "storage/publishing/staged_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <set>

#include "base/ids.hpp"

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

void list_below(const fs::path& root, const fs::path& inner, FilesBelow& found) {
  auto folder = root / inner;
  std::error_code failure;
  fs::directory_iterator entry(folder, failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    auto name = inner / entry->path().filename();
    std::error_code unknown;
    bool is_folder = !entry->is_symlink(unknown) && entry->is_directory(unknown);
    if (is_folder) list_below(root, name, found);
    (is_folder ? found.folders : found.names).push_back(name.string());
  }
  if (!failure || failure == std::errc::no_such_file_or_directory) return;
  found.unread.emplace(inner.string(), system_error("cannot list " + folder.string(), failure.value()));
}

bool is_this_file(const std::string& path, const FileState& state) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && found.st_dev == state.device && found.st_ino == state.inode;
}

/// Whether a name leads to a file can only be told for sure once nobody else can give it to another one: it is moved
/// aside first, and comes back if it is not to be removed.
template <class Predicate>
bool remove_aside(const std::string& path, Predicate may_go) {
  auto aside = (fs::path(path).parent_path() / (".removing-" + random_hex(8))).string();
  if (::rename(path.c_str(), aside.c_str()) != 0) return false;
  if (may_go(aside)) return ::unlink(aside.c_str()) == 0;
  ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
  return false;
}

/// Removing one of several names of a file changes its state, and nothing else of it.
class Remover {
 public:
  Remover(const std::string& staging, Refusal refusal) : staging_(staging), refusal_(refusal) {}

  void remove(const std::string& name, const FileState& published) {
    auto path = staging_ + "/" + name;
    if (auto file = StagedFile::open(path, refusal_)) {
      bool removed = is_same(file->state(), published) && remove_if_same(path, *file);
      if (removed) shortened_.insert(published.inode);
    } else if (auto link = link_state(path); link && *link == published) {
      remove_aside(path, [&](const std::string& aside) { return is_this_file(aside, *link); });
    }
  }

 private:
  [[nodiscard]] bool is_same(FileState staged, const FileState& published) const {
    if (shortened_.contains(staged.inode)) staged.changed_ns = published.changed_ns;
    return staged == published;
  }

  const std::string& staging_;
  Refusal refusal_;
  std::set<std::uint64_t> shortened_;  // files that have lost one of their names here
};

}  // namespace

FilesBelow files_below(const std::string& folder) {
  FilesBelow found;
  list_below(folder, "", found);
  return found;
}

bool remove_if_same(const std::string& path, const StagedFile& file) {
  using Writers = StagedFile::Writers;
  if (file.writers() == Writers::kOpen) return false;
  return remove_aside(path, [&](const std::string& aside) {
    return is_this_file(aside, file.state()) && (file.writers() == Writers::kUnknown || file.still_unwritten());
  });
}

void remove_published(const std::string& staging, const std::map<std::string, FileState>& published, Refusal refusal) {
  Remover remover(staging, refusal);
  for (const auto& [name, state] : published) remover.remove(name, state);
  for (const auto& folder : files_below(staging).folders) ::rmdir((staging + "/" + folder).c_str());
  ::rmdir(staging.c_str());
}

}  // namespace taas::storage
