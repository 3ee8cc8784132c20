#pragma once

#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::storage {

/// A new file that is removed again unless it is given its final name. Where the file system can, it has no name until
/// it is whole, so that the kernel removes it when this process is killed; elsewhere it is called ".part-…".
class PartFile {
 public:
  /// `folder` is where it will be found.
  PartFile(Fd folder, unsigned mode);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  /// None: it could not be made, and errno says why.
  [[nodiscard]] const Fd& fd() const { return fd_; }
  /// `name` is one component; `shown` is what errors call the file.
  Result<> flush_and_rename(const std::string& name, const std::string& shown);

 private:
  [[nodiscard]] bool give_name(const std::string& name) const;

  Fd folder_;
  std::string part_;
  Fd fd_;
  bool named_ = false;  // part_ leads to it
};

}  // namespace taas::storage
