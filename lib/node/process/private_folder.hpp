#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/fd.hpp"

namespace taas::node {

/// A folder on this machine that nobody else may enter: for sockets and what processes of one run tell each other.
/// Removed with this object. One whose owner was killed is removed by the next that is made in the same parent.
class PrivateFolder {
 public:
  /// In the runtime folder in /tmp, or, where there can be none, in the one that the environment names. Nothing but
  /// launchers' own is in these, so that what is swept away there is never a user's.
  static Result<PrivateFolder> make(const std::map<std::string, std::string>& environment = {});
  PrivateFolder(PrivateFolder&&) noexcept = default;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static Result<PrivateFolder> make_in(const std::string& parent);
  PrivateFolder(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;  // held as long as the owner lives
};

}  // namespace taas::node
