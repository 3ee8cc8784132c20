#pragma once

#include <string>
#include <vector>

#include "base/folders/held_folder.hpp"

namespace taas::storage {

/// Files that came from machines whose disk is not that of rank 0's, before they are given their names.
struct Delivered {
  HeldPath folder;    ///< where they lie
  std::string label;  ///< of a folder beside the others' files, for what has the same name and another content
  std::string who;    ///< for messages
};

struct Placed {
  int files = 0;                     ///< how many got a name
  std::vector<std::string> remarks;  ///< what the user should know, each a line
  std::string error;                 ///< what stays where it is; empty: nothing
};

/// Moves what was delivered among the run's files, in this order. A file that is there already stays: one with the same
/// content is dropped, another one goes below the label. Nothing else writes to these folders meanwhile, unless it is
/// up to something: no link on the way is followed. Blocks for as long as the disk takes.
Placed place_delivered(const HeldPath& files, const std::vector<Delivered>& delivered);

}  // namespace taas::storage
