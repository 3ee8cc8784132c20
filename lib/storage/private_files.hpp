#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "storage/run_directory.hpp"

namespace taas::storage {

/// What became of the files that ranks other than 0 wrote apart (--rank-output private).
struct SortedPrivateFiles {
  std::vector<Rank> dropped;               ///< the rank of each file of which one of the same name is published
  std::vector<Rank> kept;                  ///< of each other file
  std::vector<std::string> troubles = {};  ///< what was found where such files should be; nothing there was touched
};

/// Removes each private file that has a published one of the same name, and folders that are empty then. What cannot be
/// read or removed stays. Called when publishing is over.
SortedPrivateFiles sort_private_files(const RunDirectory& run);

}  // namespace taas::storage
