#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "storage/publishing/file_state.hpp"

namespace taas::storage {

/// What lies below a folder, by name relative to it.
struct FilesBelow {
  std::vector<std::string> names;       ///< whatever is not a folder, symbolic links among them
  std::vector<std::string> folders;     ///< inner ones first
  std::map<std::string, Error> unread;  ///< folders that could not be listed
};

/// What other file systems have below it is not listed.
FilesBelow files_below(const HeldFolder& folder);

/// Removes the file with this name if it is still the one that was opened and nobody writes it. False: it stays.
bool remove_if_same(const HeldFolder& folder, const std::string& name, const StagedFile& file);

/// Removes what is published with this very content, then the folders in it that are empty. All else stays.
void remove_published(const HeldFolder& staging, const std::map<std::string, FileState>& published, Refusal refusal);

}  // namespace taas::storage
