#pragma once

#include <string>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"
#include "storage/publishing/file_state.hpp"

namespace taas::storage {

/// One file to be published: where it is staged, and the content that was seen there.
struct Publication {
  HeldFolder staging;
  HeldFolder files;  ///< the folder of published files
  std::string name;  ///< the file, relative to both
  FileState seen;
  bool link = false;  ///< a symbolic link
  Refusal refusal = Refusal::kMeansWriters;
  bool at_end = false;  ///< no rank is left that would read the staged file back: it may itself get the name
};

enum class Outcome {
  kPublished,  ///< on disk under its final name
  kBusy,       ///< somebody has it open for writing
  kChanged,    ///< not the content that was seen any more
  kGone,       ///< not there any more
};

/// Copies the file beside its final name, with its time of change, flushes it, and renames it; at the end the staged
/// file is moved there, where that is possible. Whoever opens the final name finds either the whole former content or
/// the whole new one. A link into the staging folder is published as one into the published
/// files. A process that is killed meanwhile leaves nothing behind where the file system has files without a name
/// (O_TMPFILE); elsewhere a ".part-" stays beside the final name. Blocks for as long as the disk takes: for a thread of
/// its own.
Result<Outcome> publish_file(const Publication& publication);

/// Whether the published files have this name with the size and the time of change of the staged one.
bool is_published(const HeldFolder& files, const std::string& name, const FileState& staged);

/// Makes the folder of published files itself last, with the folders that lead to it from the run's output.
Result<> flush_place(const HeldFolder& files);

}  // namespace taas::storage
