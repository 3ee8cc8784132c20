#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"

namespace taas::storage {

/// What another machine says of a file before it sends it. Nothing in it is trusted.
struct FileHead {
  std::string name;       ///< relative to the folder of files
  std::string points_to;  ///< of a symbolic link; empty: a regular file
  unsigned mode = 0644;
  std::uint64_t size = 0;
};

/// A file that comes in pieces and appears whole, as a published one does, or not at all. Blocks for as long as the
/// disk takes: for a thread of its own.
class IncomingFile {
 public:
  virtual ~IncomingFile() = default;
  /// Bytes beyond the size that was said are an error.
  virtual Result<> add(std::string_view bytes) = 0;
  /// All of it has come.
  [[nodiscard]] virtual bool complete() const = 0;
  /// Puts it on disk under its name, in place of a former one. To be called once, when it is complete.
  virtual Result<> finish() = 0;
};

/// `files` is the folder that it comes to be in, `shown` the path where the run's files are found at last: a link may
/// lead there by an absolute path too. A name, or a link, that leads out of the folder is refused.
Result<std::unique_ptr<IncomingFile>> begin_file(const HeldFolder& files, const std::string& shown, FileHead head);

/// Whether a link of this name leads nowhere but below the folder of files, whatever other such links are there.
bool link_stays_below(const std::string& name, const std::string& points_to, const std::string& files);

}  // namespace taas::storage
