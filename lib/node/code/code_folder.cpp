#include "node/code/code_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/environment/environment.hpp"
#include "base/files.hpp"
#include "base/folders/beneath.hpp"
#include "base/ids.hpp"
#include "node/code/digest.hpp"

namespace taas::node {
namespace {

constexpr const char* kCompiled = "__pycache__";

mode_t mode_of(const run::CodeFile& file) { return file.executable ? 0755 : 0644; }

bool has_content(const std::string& path, const struct stat& status, const run::CodeFile& file) {
  if (S_ISLNK(status.st_mode) || !file.points_to.empty()) {
    std::error_code failed;
    return !file.points_to.empty() && std::filesystem::read_symlink(path, failed) == file.points_to;
  }
  if (static_cast<std::uint64_t>(status.st_size) != file.size) return false;
  const auto content = read_regular_file(path, file.size + 1);
  return content && content->size() == file.size && sha256(*content) == file.digest;
}

bool is_compiled(const std::string& name) {
  const std::filesystem::path path(name);
  return path.parent_path().filename() == kCompiled && path.extension() == ".pyc";
}

}  // namespace

Compared compare(const std::string& folder, const std::vector<run::CodeFile>& files) {
  Compared found;
  for (const auto& file : files) {
    struct stat status {};
    const auto path = folder + "/" + file.name;
    const bool there = ::lstat(path.c_str(), &status) == 0;
    found.has_some = found.has_some || there;
    if (!there || !has_content(path, status, file)) found.different.push_back(file.name);
  }
  return found;
}

CodeCache CodeCache::open(const std::map<std::string, std::string>& environment) {
  CodeCache cache;
  auto parent = value_of(environment, "XDG_CACHE_HOME");
  const auto home = value_of(environment, "HOME");
  if (parent.empty() && home.starts_with('/')) parent = home + "/.cache";
  if (!parent.starts_with('/')) return cache;
  std::error_code failed;
  const auto path = parent + "/taas-run/code";
  std::filesystem::create_directories(path, failed);
  auto folder = HeldFolder::open(path);
  if (folder && folder->is_ours()) cache.folder_ = std::move(*folder);
  return cache;
}

std::optional<std::string> CodeCache::find(const std::string& digest, std::uint64_t size) const {
  if (!folder_) return std::nullopt;
  auto content = folder_->read(in_hex(digest), size + 1);
  if (!content || content->size() != size || sha256(*content) != digest) return std::nullopt;
  ::utimensat(folder_->descriptor().get(), in_hex(digest).c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return std::move(*content);
}

void CodeCache::add(const std::string& digest, const std::string& content) const {
  constexpr mode_t kOwnersAlone = 0600;
  if (folder_) (void)folder_->replace(in_hex(digest), content, kOwnersAlone);
}

void CodeCache::shrink() const {
  const auto entries = folder_ ? folder_->entries() : Error{};
  if (!entries) return;
  struct Kept {
    timespec used;
    std::uint64_t size;
    std::string name;
  };
  std::vector<Kept> all;
  std::uint64_t total = 0;
  for (const auto& entry : *entries) {
    struct stat status {};
    if (::fstatat(folder_->descriptor().get(), entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    total += static_cast<std::uint64_t>(status.st_size);
    all.push_back({status.st_mtim, static_cast<std::uint64_t>(status.st_size), entry.name});
  }
  const auto older = [](const Kept& a, const Kept& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  };
  std::sort(all.begin(), all.end(), older);
  for (const auto& kept : all) {
    if (total <= kMostBytes) return;
    if (folder_->remove(kept.name)) total -= kept.size;
  }
}

Result<CodeFolder> CodeFolder::make(const std::string& run_folder, const std::string& name) {
  std::error_code failed;
  const bool made = std::filesystem::create_directories(run_folder, failed);
  if (failed) return system_error("cannot make " + run_folder, failed.value());
  auto parent = HeldFolder::open(run_folder);
  if (!parent) return parent.error();
  auto folder = parent->make_folder(name);
  if (!folder) return folder.error();
  return CodeFolder(std::move(*parent), made, name, std::move(*folder));
}

/// What a rank has changed is the rank's.
Result<> CodeFolder::lay_out(const std::vector<run::CodeFile>& files, const CodeContents& contents) {
  std::set<std::string> names;
  for (const auto& file : files) names.insert(file.name);
  for (auto at = laid_.begin(); at != laid_.end();) {
    const bool stays = names.contains(at->first);
    if (!stays && is_as_laid(at->second)) folder_.remove(at->first);
    at = stays ? std::next(at) : laid_.erase(at);
  }
  for (const auto& file : files) {
    const auto former = laid_.find(file.name);
    if (former != laid_.end() && (former->second == file || !is_as_laid(former->second))) continue;
    if (auto made = lay(file, contents); !made) return made;
    laid_[file.name] = file;
  }
  return {};
}

Result<> CodeFolder::lay(const run::CodeFile& file, const CodeContents& contents) {
  const auto slash = file.name.rfind('/');
  if (slash != file.name.npos) {
    if (auto made = folder_.make_folder(file.name.substr(0, slash)); !made) return made.error();
  }
  if (file.points_to.empty()) return folder_.replace(file.name, contents.at(file.digest), mode_of(file));
  folder_.remove(file.name);
  auto place = open_place_below(folder_.descriptor(), file.name, Missing::kRefuse);
  if (!place) return place.error();
  if (::symlinkat(file.points_to.c_str(), place->folder.get(), place->name.c_str()) == 0) return {};
  return system_error("cannot make " + folder_.path_of(file.name), errno);
}

bool CodeFolder::is_as_laid(const run::CodeFile& file) const {
  if (!file.points_to.empty()) {
    const auto link = folder_.read_link(file.name);
    return link && *link == file.points_to;
  }
  const auto content = folder_.read(file.name, file.size + 1);
  return content && content->size() == file.size && sha256(*content) == file.digest;
}

void CodeFolder::walk(const std::string& below, std::vector<std::string>& files,
                      std::vector<std::string>& folders) const {
  const auto here = below.empty() ? Result<HeldFolder>(folder_) : folder_.folder(below);
  const auto entries = here ? here->entries() : here.error();
  if (!entries) return;
  for (const auto& entry : *entries) {
    const auto name = below.empty() ? entry.name : below + "/" + entry.name;
    if (entry.is_folder) walk(name, files, folders);
    (entry.is_folder ? folders : files).push_back(name);
  }
}

bool CodeFolder::is_derived(const std::string& name) const {
  const auto laid = laid_.find(name);
  return laid != laid_.end() ? is_as_laid(laid->second) : is_compiled(name);
}

std::vector<std::string> CodeFolder::written_by_ranks() const {
  std::vector<std::string> files, folders, written;
  walk("", files, folders);
  for (auto& name : files) {
    if (!is_derived(name)) written.push_back(std::move(name));
  }
  std::sort(written.begin(), written.end());
  return written;
}

void CodeFolder::remove() {
  std::vector<std::string> files, folders;
  walk("", files, folders);
  for (const auto& name : files) {
    if (is_derived(name)) folder_.remove(name);
  }
  for (const auto& name : folders) folder_.remove_folder(name);  // inner ones come first
  parent_.remove_folder(name_);
  if (made_parent_) ::rmdir(parent_.path().c_str());  // of a run that only looked, or was refused
}

}  // namespace taas::node
