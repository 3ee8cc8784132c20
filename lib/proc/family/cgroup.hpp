#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace taas {

/// Where this process's control group for a controller ("memory", "cpu") is seen in the file system.
struct Cgroup {
  enum class Version { kOne, kTwo };
  Version version = Version::kTwo;
  std::string mount;      ///< "/sys/fs/cgroup": the topmost group that is visible
  std::string directory;  ///< the process's own group, at or below `mount`
};

/// The group from the texts of /proc/self/cgroup and /proc/self/mountinfo. A version 1 hierarchy with the controller
/// goes before version 2, as in the kernel. Inside a container the process's path may lie outside of what is mounted:
/// then it is the mounted top.
std::optional<Cgroup> parse_cgroup(std::string_view controller, std::string_view cgroups, std::string_view mounts);

std::optional<Cgroup> find_cgroup(std::string_view controller);

}  // namespace taas
