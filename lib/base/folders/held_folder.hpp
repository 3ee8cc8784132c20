#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// A folder that is held open, and what lies below it. Ranks write there, and may put something else in the place of
/// what the launcher has made at any time: a symbolic link, a pipe, a mount. So nothing below is reached by its path.
/// Names are resolved beneath the descriptor, through folders of the same mount only, and what is opened has to be a
/// regular file. An error says what was found where. Copies hold the same descriptor.
class HeldFolder {
 public:
  /// Holds none: every call is an error.
  HeldFolder() = default;
  /// Links that lead to it are the user's own arrangement, and are followed, once. One in its own place is refused.
  static Result<HeldFolder> open(const std::string& path);

  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(fd_); }
  /// What it was opened as, for messages and for whoever is told where it is.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  /// For calls that take a folder and one component.
  [[nodiscard]] const Fd& descriptor() const;

  [[nodiscard]] Result<HeldFolder> folder(const std::string& name) const;
  /// With the folders above it; one that is there already is taken.
  [[nodiscard]] Result<HeldFolder> make_folder(const std::string& name) const;

  [[nodiscard]] Result<Fd> open_to_read(const std::string& name) const;
  /// Where a symbolic link leads; an error where the name is none.
  [[nodiscard]] Result<std::string> read_link(const std::string& name) const;
  /// The first bytes of a file, at most so many.
  [[nodiscard]] Result<std::string> read(const std::string& name, std::size_t most) const;
  /// The file is made where it is missing. One that has another name as well is refused: that may be anybody's.
  [[nodiscard]] Result<Fd> open_to_append(const std::string& name, mode_t mode) const;
  /// A file of this content appears whole, in place of whatever has the name. No folder is made.
  [[nodiscard]] Result<> replace(const std::string& name, std::string_view content, mode_t mode) const;

  struct Entry {
    std::string name;
    bool is_folder;  ///< a link to one is none
  };
  /// Of the folder itself, in no order.
  [[nodiscard]] Result<std::vector<Entry>> entries() const;
  /// Whether something that is not a folder has the name.
  [[nodiscard]] bool has(const std::string& name) const;

  /// Makes a new name last, with the folders above it.
  [[nodiscard]] Result<> flush(const std::string& name) const;

  /// Removes a name, of whatever but a folder. False: it stays.
  bool remove(const std::string& name) const;
  /// Removes an empty folder. False: it stays.
  bool remove_folder(const std::string& name) const;
  /// Removes all that is in it, wherever the folder is by now. Other mounts stay, and the folders that they are in.
  void remove_content() const;

 private:
  enum class Wanted { kFolder, kFile, kFileOfOneName, kNoFolder };

  HeldFolder(Fd fd, std::string path) : fd_(std::make_shared<const Fd>(std::move(fd))), path_(std::move(path)) {}
  [[nodiscard]] Result<HeldFolder> above(const std::string& name) const;
  [[nodiscard]] Result<Fd> open_found(const std::string& name, int flags, Wanted wanted) const;
  [[nodiscard]] Error refusal(const std::string& name, Wanted wanted, int system_errno) const;
  [[nodiscard]] std::string find_obstacle(const std::string& name, Wanted wanted, int system_errno) const;

  std::shared_ptr<const Fd> fd_;
  std::string path_;
};

/// A name below a held folder, for whoever opens it later; without a name there is none.
struct HeldPath {
  HeldFolder folder = {};
  std::string name = {};

  [[nodiscard]] bool empty() const { return name.empty(); }
  /// Empty: there is none.
  [[nodiscard]] std::string path() const { return name.empty() ? std::string() : folder.path_of(name); }
  [[nodiscard]] HeldPath with(std::string_view suffix) const { return {folder, name + std::string(suffix)}; }
};

}  // namespace taas
