#pragma once

#include <span>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

/// Landlock rules under which everything may be written but a few directories and what is below them. They are made
/// once, in the launcher; a process that puts them on itself keeps them for life and passes them to its children.
///
/// Landlock can only allow, so the rules allow writing to every neighbour of the directories and of their parents, as
/// they are when the rules are made. Therefore, besides the directories themselves, entries can be neither created nor
/// removed *directly* in one of their parents; existing entries there, and everything below them, stay writable.
class Ruleset {
 public:
  explicit Ruleset(Fd rules) : rules_(std::move(rules)) {}
  /// Puts the rules on the calling thread, for good: also ends gains of privilege (sudo) for it. Only system calls, so
  /// fit for the time between fork and exec. False: errno says why.
  [[nodiscard]] bool restrict_self() const;
  /// For a process that puts them on itself by its own means.
  [[nodiscard]] int descriptor() const { return rules_.get(); }

 private:
  Fd rules_;
};

/// Of the kernel's interface; 0 where it has no Landlock or it is switched off.
long landlock_version();

/// False where the kernel has no Landlock or it is switched off.
bool landlock_supported();

/// What rules of this version let through that a newer kernel refuses; empty: nothing. What no version refuses is a
/// change of mode, owner, times and extended attributes, and a write through another name of the same file (a hard
/// link) that lies elsewhere.
std::string landlock_gap(long version);

/// Rules that make these directories read-only but for folders within them. Symbolic links and relative paths are
/// resolved now; an exception that does not exist is none, and one that holds one of the directories is an error.
Result<Ruleset> make_read_only(std::span<const std::string> directories, std::span<const std::string> but_for = {});

}  // namespace taas
