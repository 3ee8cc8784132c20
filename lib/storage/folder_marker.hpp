#pragma once

#include <string>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"

namespace taas::storage {

/// Leaves a mark in a run's folder, or reads the one that another process has left: processes that get the same one see
/// the same folder, on whatever machines they are. Device numbers and paths cannot tell that. `run` is the same for all
/// processes of a run, and of no other run: a folder with another run's mark is an error, since what lies in it would
/// be taken for this run's. Empty: this file system cannot hold a mark.
Result<std::string> mark_folder(const HeldFolder& folder, const std::string& run);

/// By which kernel this process sees the folder, and as which file system: what processes write is told (inotify) to
/// those that have the same view.
std::string view_of_folder(const HeldFolder& folder);

}  // namespace taas::storage
