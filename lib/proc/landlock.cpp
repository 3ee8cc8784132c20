#include "proc/landlock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <vector>

namespace taas {
namespace {

using Rights = std::uint64_t;
using Path = std::filesystem::path;

// From the third version of the interface, newer than some headers.
constexpr Rights kTruncate = 1ULL << 14;
constexpr Rights kFileRights = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr Rights kFirstRights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

/// 0 where the kernel has none. Asking is not creating: the null attributes make it a question.
long interface_version() {
  long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : version;
}

/// Every right to change files that the running kernel can withhold. The first version withholds renames and links
/// across directories from everybody; the second lets rules allow them; the third knows truncation.
Rights write_rights(long version) {
  Rights rights = kFirstRights;
  if (version >= 2) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= 3) rights |= kTruncate;
  return rights;
}

/// Walks from the root to the protected directories and allows everything beside the way.
class RuleMaker {
 public:
  RuleMaker(const Fd& rules, Rights rights, std::vector<Path> is_protected)
      : rules_(rules), rights_(rights), protected_(std::move(is_protected)) {}

  /// An entry that cannot be opened or listed is left out, hence not writable: it vanished, or is not the user's.
  void allow(const Path& path) const {
    if (is_protected(path)) return;
    if (!leads_to_protected(path)) return add_rule(path);
    std::error_code failed;
    for (std::filesystem::directory_iterator entry(path, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      allow(entry->path());
    }
  }

  void add_rule(const Path& path) const {
    Fd entry(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!entry || ::fstat(entry.get(), &status) != 0 || S_ISLNK(status.st_mode)) return;
    landlock_path_beneath_attr rule{};
    rule.allowed_access = S_ISDIR(status.st_mode) ? rights_ : rights_ & kFileRights;
    rule.parent_fd = entry.get();
    ::syscall(SYS_landlock_add_rule, rules_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  }

 private:
  [[nodiscard]] bool is_protected(const Path& path) const {
    return std::find(protected_.begin(), protected_.end(), path) != protected_.end();
  }

  [[nodiscard]] bool leads_to_protected(const Path& path) const {
    for (const auto& target : protected_) {
      if (std::mismatch(path.begin(), path.end(), target.begin(), target.end()).first == path.end()) return true;
    }
    return false;
  }

  const Fd& rules_;
  Rights rights_;
  std::vector<Path> protected_;
};

Result<std::vector<Path>> resolve(std::span<const std::string> directories) {
  std::vector<Path> result;
  for (const auto& directory : directories) {
    std::error_code failed;
    auto path = std::filesystem::canonical(directory, failed);
    if (failed) return system_error("cannot protect directory " + directory, failed.value());
    if (!std::filesystem::is_directory(path)) {
      return system_error("cannot protect " + directory, ENOTDIR);
    }
    result.push_back(std::move(path));
  }
  return result;
}

}  // namespace

bool Ruleset::restrict_self() const {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(SYS_landlock_restrict_self, rules_.get(), 0) == 0;
}

bool landlock_supported() { return interface_version() > 0; }

Result<Ruleset> make_read_only(std::span<const std::string> directories, std::span<const std::string> but_for) {
  auto version = interface_version();
  if (version == 0) {
    return unavailable_error("cannot make directories read-only: this kernel has no Landlock, or it is switched off");
  }
  auto paths = resolve(directories);
  if (!paths) return paths.error();
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = write_rights(version);
  Fd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!rules) return system_error("cannot make Landlock rules", errno);
  RuleMaker maker(rules, attributes.handled_access_fs, std::move(*paths));
  maker.allow("/");
  for (const auto& exception : but_for) {
    std::error_code missing;
    auto path = std::filesystem::canonical(exception, missing);
    if (!missing) maker.add_rule(path);
  }
  return Ruleset(std::move(rules));
}

}  // namespace taas
