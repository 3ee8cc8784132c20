#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/folders/held_folder.hpp"

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

  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  [[nodiscard]] const HeldFolder& held() const { return folder_; }

 private:
  static Result<PrivateFolder> make_in(const std::string& parent);
  PrivateFolder(HeldFolder parent, std::string name, HeldFolder folder)
      : parent_(std::move(parent)), name_(std::move(name)), folder_(std::move(folder)) {}

  HeldFolder parent_;
  std::string name_;   // in the parent
  HeldFolder folder_;  // its descriptor has the lock
};

}  // namespace taas::node
