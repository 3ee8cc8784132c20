#include "proc/family/cgroup.hpp"

#include <algorithm>
#include <vector>

#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

bool has(const std::vector<std::string_view>& items, std::string_view wanted) {
  return std::find(items.begin(), items.end(), wanted) != items.end();
}

struct Membership {
  Cgroup::Version version;
  std::string_view path;
};

/// Lines are "hierarchy:controllers:path"; version 2 is the one without controllers.
std::optional<Membership> find_membership(std::string_view controller, std::string_view cgroups) {
  std::optional<Membership> unified;
  for (auto line : split(cgroups, '\n')) {
    auto first = line.find(':');
    auto second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    auto controllers = line.substr(first + 1, second - first - 1);
    auto path = line.substr(second + 1);
    if (has(split(controllers, ','), controller)) return Membership{Cgroup::Version::kOne, path};
    if (controllers.empty()) unified = Membership{Cgroup::Version::kTwo, path};
  }
  return unified;
}

struct Mount {
  std::string_view root;   ///< which group of the hierarchy is mounted
  std::string_view point;  ///< where
};

/// Fields of proc_pid_mountinfo(5): the fourth is the root, the fifth the mount point; after " - " come type, source
/// and super options, which name the controllers of a version 1 hierarchy.
std::optional<Mount> find_mount(Cgroup::Version version, std::string_view controller, std::string_view mounts) {
  for (auto line : split(mounts, '\n')) {
    auto dash = line.find(" - ");
    if (dash == line.npos) continue;
    auto mount = split(line.substr(0, dash), ' ');
    auto file_system = split(line.substr(dash + 3), ' ');
    if (mount.size() < 5 || file_system.size() < 3) continue;
    bool matches = version == Cgroup::Version::kTwo
                       ? file_system[0] == "cgroup2"
                       : file_system[0] == "cgroup" && has(split(file_system[2], ','), controller);
    if (matches) return Mount{mount[3], mount[4]};
  }
  return std::nullopt;
}

/// The path below the mounted root, or nothing when it lies elsewhere.
std::string_view below(std::string_view path, std::string_view root) {
  if (root == "/") return path == "/" || path.find("/..") != path.npos ? "" : path;
  return path.starts_with(root) && path.substr(root.size()).starts_with('/') ? path.substr(root.size()) : "";
}

}  // namespace

std::optional<Cgroup> parse_cgroup(std::string_view controller, std::string_view cgroups, std::string_view mounts) {
  auto membership = find_membership(controller, cgroups);
  if (!membership) return std::nullopt;
  auto mount = find_mount(membership->version, controller, mounts);
  if (!mount) return std::nullopt;
  std::string point(mount->point);
  return Cgroup{membership->version, point, point + std::string(below(membership->path, mount->root))};
}

std::optional<Cgroup> find_cgroup(std::string_view controller) {
  auto cgroups = read_file("/proc/self/cgroup");
  auto mounts = read_file("/proc/self/mountinfo");
  if (!cgroups || !mounts) return std::nullopt;
  return parse_cgroup(controller, *cgroups, *mounts);
}

}  // namespace taas
