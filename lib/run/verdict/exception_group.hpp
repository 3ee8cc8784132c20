#pragma once

#include <span>
#include <string>
#include <vector>

namespace taas::run {

/// Python draws an exception group as a tree. The lines without its margins: the group's traceback, and behind it that
/// of the first exception in it, as if they stood alone. Others in the group are blank lines, so that each line has its
/// place.
std::vector<std::string> flatten_exception_groups(std::span<const std::string> lines);

}  // namespace taas::run
