#pragma once

#include <sys/mount.h>

#include <string>

#include "temporary_folder.hpp"

namespace taas::storage {

/// A tmpfs of a few pages mounted in a folder of its own; needs root.
class SmallDisk {
 public:
  explicit SmallDisk(const char* options) : path_(folder_ / "disk") {
    std::filesystem::create_directory(path_);
    mounted_ = ::mount("taas-test", path_.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  bool make_read_only() { return ::mount("taas-test", path_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0; }

 private:
  TemporaryFolder folder_;
  std::string path_;
  bool mounted_ = false;
};

}  // namespace taas::storage
