#pragma once

#include <filesystem>
#include <string>

#include "base/folders/held_folder.hpp"

namespace taas {

/// A path of a test as what holds the folder that it is in. Empty: none.
inline HeldPath held_path(const std::string& path) {
  if (path.empty()) return {};
  const std::filesystem::path whole(path);
  return {HeldFolder::open(whole.parent_path().string()).value(), whole.filename().string()};
}

}  // namespace taas
