#pragma once

#include <string>

#include "storage/publishing/file_state.hpp"

namespace taas::storage {

/// Gives the staged file itself the name `to`, on disk, so that no second copy needs room. For a file that nobody
/// writes by the kernel's word, that has no other name, and that lies in the same file system; false: nothing has
/// changed, and it has to be copied. The folder of `to` is there.
bool move_staged(StagedFile& staged, const std::string& from, const std::string& to);

}  // namespace taas::storage
