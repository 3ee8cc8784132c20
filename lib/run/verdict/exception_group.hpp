#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace taas::run {

/// Python draws an exception group as a tree. This is what was printed without its margins: the group's traceback, and
/// behind it that of the first exception in it, as if they stood alone. Others in the group are blank lines, so that
/// each line has its place.
struct WithoutGroups {
  struct Group {
    std::size_t begin = 0;  ///< its first line
    std::size_t end = 0;    ///< ... and the one after its last
    /// What each exception in it says in its first line. Groups in it are replaced by their own members.
    std::vector<std::string> members = {};
  };
  std::vector<std::string> lines;
  std::vector<Group> groups;
};
WithoutGroups flatten_exception_groups(std::span<const std::string> lines);

}  // namespace taas::run
