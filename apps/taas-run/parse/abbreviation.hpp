#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "flags/flags.hpp"

namespace taas::cli {

/// The options that a name can stand for, without the dashes in front: the one of this name, or else all that begin
/// with it. Where some of these are torchrun's, they alone, so that its abbreviations mean the same here.
std::vector<const Flag*> flags_meant_by(std::string_view name);

/// The argument of an option that is known, as it is spelled in full: "--log-dir=x" for "--log-d=x", and "-t3" for
/// "-t=3".
std::string spelled_out(const std::string& argument);

}  // namespace taas::cli
