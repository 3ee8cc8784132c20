#include "proc/family/cgroup.hpp"

#include <filesystem>

#include "catch.hpp"

namespace cgroup_test {

using namespace taas;

namespace {

constexpr auto kTwoMounts =
    "25 1 0:22 / /proc rw - proc proc rw\n30 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";
constexpr auto kOneMounts =
    "31 28 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 28 0:29 / /sys/fs/cgroup/memory rw shared:12 - cgroup cgroup rw,memory\n"
    "33 28 0:30 / /sys/fs/cgroup/unified rw shared:13 - cgroup2 cgroup2 rw\n";

std::string directory(std::string_view controller, std::string_view cgroups, std::string_view mounts) {
  auto group = parse_cgroup(controller, cgroups, mounts);
  return group ? group->directory : "none";
}

}  // namespace

TEST_CASE("version 2: one group for all controllers") {
  auto group = parse_cgroup("memory", "0::/user.slice/session-1.scope\n", kTwoMounts);
  REQUIRE(group.has_value());
  CHECK(group->version == Cgroup::Version::kTwo);
  CHECK(group->mount == "/sys/fs/cgroup");
  CHECK(group->directory == "/sys/fs/cgroup/user.slice/session-1.scope");
  CHECK(directory("cpu", "0::/\n", kTwoMounts) == "/sys/fs/cgroup");
}

TEST_CASE("version 1: each controller has its own, also beside version 2") {
  constexpr auto kGroups = "5:memory:/job/7\n2:cpu,cpuacct:/slow\n1:name=systemd:/init\n0::/else\n";
  auto group = parse_cgroup("memory", kGroups, kOneMounts);
  REQUIRE(group.has_value());
  CHECK(group->version == Cgroup::Version::kOne);
  CHECK(group->directory == "/sys/fs/cgroup/memory/job/7");
  CHECK(directory("cpu", kGroups, kOneMounts) == "/sys/fs/cgroup/cpu,cpuacct/slow");
  CHECK(directory("pids", kGroups, kOneMounts) == "/sys/fs/cgroup/unified/else");
}

TEST_CASE("in a container the mounted top is a group of the host") {
  constexpr auto kMounts = "40 39 0:29 /docker/abc /sys/fs/cgroup/memory ro master:12 - cgroup cgroup rw,memory\n";
  CHECK(directory("memory", "5:memory:/docker/abc\n", kMounts) == "/sys/fs/cgroup/memory");
  CHECK(directory("memory", "5:memory:/docker/abc/job\n", kMounts) == "/sys/fs/cgroup/memory/job");
  CHECK(directory("memory", "5:memory:/docker/abcd\n", kMounts) == "/sys/fs/cgroup/memory");
  CHECK(directory("memory", "0::/../other\n", kTwoMounts) == "/sys/fs/cgroup");
}

TEST_CASE("no group where nothing is mounted or the texts are odd") {
  CHECK(directory("memory", "5:memory:/job\n", kTwoMounts) == "none");
  CHECK(directory("memory", "", kTwoMounts) == "none");
  CHECK(directory("memory", "nonsense\n:\n::\n", "more - nonsense\n - \n") == "none");
}

TEST_CASE("the real group exists") {
  auto group = find_cgroup("memory");
  if (!group) SKIP_TEST("no memory control group here");
  CHECK(std::filesystem::is_directory(group->directory));
  CHECK(group->directory.starts_with(group->mount));
}

}  // namespace cgroup_test
