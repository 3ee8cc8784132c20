#pragma once

#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::hosts {

/// A folder on this machine that nobody else may enter: for sockets and what processes of one run tell each other.
/// Removed with this object. One whose owner was killed is removed by the next that is made.
class PrivateFolder {
 public:
  static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&&) noexcept = default;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  PrivateFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;  // held as long as the owner lives
};

}  // namespace taas::hosts
