#pragma once

#include <string>
#include <vector>

#include "storage/private_files.hpp"

namespace taas::node {

/// For the user: a line for the files that were dropped, and one for those that were kept in this folder.
std::vector<std::string> private_remarks(const storage::SortedPrivateFiles& files, const std::string& folder);

}  // namespace taas::node
