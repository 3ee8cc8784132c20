#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/folders/held_folder.hpp"
#include "run/messages/code_frames.hpp"

namespace taas::node {

/// Contents by their digest.
using CodeContents = std::map<std::string, std::string>;

/// What a folder has of these files. It may have others.
struct Compared {
  bool has_some = false;               ///< names that are there, whatever is in them
  std::vector<std::string> different;  ///< or missing
};
Compared compare(const std::string& folder, const std::vector<run::CodeFile>& files);

/// Contents that this machine has had before, each in a file that is called by its digest.
class CodeCache {
 public:
  /// In $XDG_CACHE_HOME, or ~/.cache. Where there can be none, it is empty and stays so.
  static CodeCache open(const std::map<std::string, std::string>& environment);

  /// What stands there is compared with its name first.
  [[nodiscard]] std::optional<std::string> find(const std::string& digest, std::uint64_t size) const;
  void add(const std::string& digest, const std::string& content) const;
  /// The oldest go first, while all together are larger than kMostBytes.
  void shrink() const;

  static constexpr std::uint64_t kMostBytes = 512u << 20;

 private:
  std::optional<HeldFolder> folder_;
};

/// A copy of the program's folder, below the folder of a run. Ranks work in it, and may leave files of their own.
class CodeFolder {
 public:
  /// Made where it is missing.
  static Result<CodeFolder> make(const std::string& run_folder, const std::string& name);

  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  /// From now on it has these files, whose contents are given, and none of those of before. What ranks have changed
  /// stays as they left it.
  Result<> lay_out(const std::vector<run::CodeFile>& files, const CodeContents& contents);
  /// Files that are not as lay_out() has left them, but for what Python compiles.
  [[nodiscard]] std::vector<std::string> written_by_ranks() const;
  /// Removes what lay_out() has made and what Python compiled, and then empty folders.
  void remove();

 private:
  CodeFolder(HeldFolder parent, bool made_parent, std::string name, HeldFolder folder)
      : parent_(std::move(parent)), made_parent_(made_parent), name_(std::move(name)), folder_(std::move(folder)) {}

  [[nodiscard]] bool is_as_laid(const run::CodeFile& file) const;
  [[nodiscard]] bool is_derived(const std::string& name) const;  ///< no work of a rank's
  Result<> lay(const run::CodeFile& file, const CodeContents& contents);
  void walk(const std::string& below, std::vector<std::string>& files, std::vector<std::string>& folders) const;

  HeldFolder parent_;
  bool made_parent_;
  std::string name_;
  HeldFolder folder_;
  std::map<std::string, run::CodeFile> laid_;  // by name
};

}  // namespace taas::node
