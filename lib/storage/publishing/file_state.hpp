#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "base/folders/held_folder.hpp"

namespace taas::storage {

/// Tells one content of a file from another without reading it: any write, rename or replacement changes it.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// What a call of the stat family has told.
FileState state_of(const struct stat& found);

/// Of the symbolic link itself; ENOENT and others come back as they are, what is no link is EINVAL.
Result<FileState> link_state(const HeldFolder& folder, const std::string& name);

/// What it means when the kernel refuses a read lease (EAGAIN).
enum class Refusal {
  kMeansWriters,  ///< somebody has the file open for writing
  kMeansNothing,  ///< this file system refuses leases as it likes: NFS grants one only with a delegation of the server
};

/// Finds out by a file of its own, made in this folder for a moment, which meaning it has on the folder's file system.
Refusal learn_refusal(const HeldFolder& folder);

/// A staged file opened for reading, and a promise of the kernel about its writers.
class StagedFile {
 public:
  enum class Writers {
    kNone,     ///< nobody has it open for writing, and still_unwritten() can tell whether that remained so
    kOpen,     ///< somebody has: closing it will be told by another event
    kUnknown,  ///< the file system cannot say
  };

  /// ENOENT, ELOOP (a symbolic link on the way) and others come back as they are; what is no file is EINVAL.
  static Result<StagedFile> open(const HeldFolder& folder, const std::string& name,
                                 Refusal refusal = Refusal::kMeansWriters);

  [[nodiscard]] const FileState& state() const { return state_; }
  [[nodiscard]] Writers writers() const { return writers_; }
  [[nodiscard]] const Fd& fd() const { return fd_; }
  [[nodiscard]] unsigned mode() const { return mode_; }
  /// Nobody has opened it for writing since open(). Until release() such an opener waits, so ask often and
  /// give up soon.
  [[nodiscard]] bool still_unwritten() const;
  /// Lets writers pass.
  void release() { fd_.reset(); }

 private:
  StagedFile() = default;
  Fd fd_;
  FileState state_;
  unsigned mode_ = 0;
  Writers writers_ = Writers::kUnknown;
};

}  // namespace taas::storage
