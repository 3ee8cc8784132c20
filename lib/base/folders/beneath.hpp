#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas {

// Files below a folder that somebody else may write to. A path that is looked up again may lead elsewhere by then, so
// such a folder is held open from its creation on, and names are resolved beneath the descriptor.

/// Whether this is the name of a file below a folder: relative, without "." and "..", and no longer than names may be.
bool is_name_below(const std::string& name);

/// Opens what is called `name` beneath the folder; "" is the folder itself. No symbolic link on the way is followed,
/// whoever made it, the last part included, and no mount is entered: ELOOP, ENOTDIR or EXDEV then. A FIFO does not
/// block. `flags` and `mode` are those of open(2).
Result<Fd> open_beneath(const Fd& folder, const std::string& name, int flags, mode_t mode = 0);

/// A name below a folder, taken apart: the folder that it is in, opened, and its last part.
struct PlaceBelow {
  Fd folder;
  std::string name;
};

enum class Missing { kMake, kRefuse };

/// Opens the folder that `name` is in, beneath `top`, as open_beneath() does.
Result<PlaceBelow> open_place_below(const Fd& top, const std::string& name, Missing folders);
/// For a `top` that nobody else can replace.
Result<PlaceBelow> open_place_below(const std::string& top, const std::string& name, Missing folders);

/// Opens a folder by a path that nobody else can replace.
Result<Fd> open_folder(const std::string& path);

/// What stands under this name now, for a message: "a symbolic link to /scratch", "another folder", "nothing".
std::string describe_beneath(const Fd& folder, const std::string& name);

}  // namespace taas
