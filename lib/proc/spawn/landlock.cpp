#include "proc/spawn/landlock.hpp"

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
constexpr long kFirstThatKnowsTruncation = 3;
constexpr Rights kFileRights = LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr Rights kFirstRights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

/// Every right to change files that the running kernel can withhold. The first version withholds renames and links
/// across directories from everybody; the second lets rules allow them; the third knows truncation.
Rights write_rights(long version) {
  Rights rights = kFirstRights;
  if (version >= 2) rights |= LANDLOCK_ACCESS_FS_REFER;
  if (version >= kFirstThatKnowsTruncation) rights |= kTruncate;
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
    if (find_protected_in(path) == nullptr) return add_rule(path);
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

  [[nodiscard]] bool is_in_protected(const Path& path) const {
    return std::any_of(protected_.begin(), protected_.end(), [&](const Path& target) {
      return std::mismatch(target.begin(), target.end(), path.begin(), path.end()).first == target.end();
    });
  }

  /// Of the protected directories one that is the path, or lies below it; null: none.
  [[nodiscard]] const Path* find_protected_in(const Path& path) const {
    for (const auto& target : protected_) {
      if (std::mismatch(path.begin(), path.end(), target.begin(), target.end()).first == path.end()) return &target;
    }
    return nullptr;
  }

 private:
  [[nodiscard]] bool is_protected(const Path& path) const {
    return std::find(protected_.begin(), protected_.end(), path) != protected_.end();
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

/// One that holds a protected directory would leave that unprotected, and nobody would hear of it.
Result<> add_exception(const RuleMaker& maker, const std::string& exception) {
  std::error_code missing;
  auto path = std::filesystem::canonical(exception, missing);
  if (missing) return {};
  if (const auto* whole = maker.find_protected_in(path)) {
    return usage_error(
        fmt::format("cannot leave {} writable: all of {} would be, which is to be protected; name "
                    "folders within it",
                    exception, whole->string()));
  }
  if (!maker.is_in_protected(path)) {
    return usage_error(
        fmt::format("cannot leave {} writable: it is in none of the folders of --protect, and so it is", exception));
  }
  maker.add_rule(path);
  return {};
}

}  // namespace

bool Ruleset::restrict_self() const {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(SYS_landlock_restrict_self, rules_.get(), 0) == 0;
}

/// Asking is not creating: the null attributes make it a question.
long landlock_version() {
  long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : version;
}

bool landlock_supported() { return landlock_version() > 0; }

std::string landlock_gap(long version) {
  if (version >= kFirstThatKnowsTruncation) return "";
  return "this kernel does not refuse truncate(): a protected file can still be emptied (Linux 6.2 or newer refuses "
         "it)";
}

Result<Ruleset> make_read_only(std::span<const std::string> directories, std::span<const std::string> but_for) {
  auto version = landlock_version();
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
    if (auto added = add_exception(maker, exception); !added) return added.error();
  }
  return Ruleset(std::move(rules));
}

}  // namespace taas
