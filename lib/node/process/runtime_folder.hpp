#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::node {

/// A folder of this user's on this machine that nobody else may enter, the same for all launchers of the user: for
/// locks by which they find each other, and for the private folders of runs. In XDG_RUNTIME_DIR where that is such a
/// folder, else in `parent`, or where that cannot be in TMPDIR, under a name that another user has not taken: names in
/// /tmp are free for everybody.
Result<std::string> runtime_folder(const std::map<std::string, std::string>& environment,
                                   const std::string& parent = "/tmp");

/// A file of the folder, made where it is missing, for flock().
Result<Fd> open_lock(const std::string& path);

}  // namespace taas::node
