#pragma once

#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::storage {

/// Whether a name that another machine sent is one of a file below a folder: relative, without "." and "..", and no
/// longer than names may be.
bool is_name_below(const std::string& name);

/// A name below a folder, taken apart: the folder that it is in, opened, and its last part.
struct PlaceBelow {
  Fd folder;
  std::string name;
};

enum class Missing { kMake, kRefuse };

/// Opens the folder that `name` is in, below `top`. No symbolic link on the way is followed, whoever made it, so that
/// nothing is written elsewhere: ELOOP or ENOTDIR then.
Result<PlaceBelow> open_place_below(const std::string& top, const std::string& name, Missing folders);

}  // namespace taas::storage
