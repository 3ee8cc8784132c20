#include "proc/machine/memory_watch.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "base/text.hpp"
#include "proc/family/cgroup.hpp"

namespace taas {
namespace {

/// The number that follows `key` and blanks at the beginning of a line of the file.
std::optional<std::int64_t> read_entry(const std::string& path, std::string_view key) {
  auto text = read_file(path);
  if (!text) return std::nullopt;
  for (auto line : split(*text, '\n')) {
    if (!line.starts_with(key)) continue;
    auto digits = line.find_first_not_of(' ', key.size());
    if (digits == line.npos) return std::nullopt;
    std::int64_t number = 0;
    auto [rest, problem] = std::from_chars(line.data() + digits, line.data() + line.size(), number);
    if (problem != std::errc()) return std::nullopt;
    return number;
  }
  return std::nullopt;
}

/// All three files that count victims have a line "oom_kill <number>".
std::optional<long> read_count(const std::string& path) { return read_entry(path, "oom_kill "); }

/// What a group may still take: pages that only cache a file and were not used lately go when memory is short.
std::optional<std::int64_t> left_in(Cgroup::Version version, const std::string& directory) {
  bool first = version == Cgroup::Version::kOne;
  auto limit = read_entry(directory + (first ? "/memory.limit_in_bytes" : "/memory.max"), "");
  auto used = read_entry(directory + (first ? "/memory.usage_in_bytes" : "/memory.current"), "");
  if (!limit || !used) return std::nullopt;  // "max": none
  auto cache = read_entry(directory + "/memory.stat", first ? "total_inactive_file " : "inactive_file ").value_or(0);
  return std::max<std::int64_t>(0, *limit - *used + cache);
}

}  // namespace

std::optional<long> oom_kills() {
  auto group = find_cgroup("memory");
  if (group) {
    bool first = group->version == Cgroup::Version::kOne;
    auto count = read_count(group->directory + (first ? "/memory.oom_control" : "/memory.events"));
    if (count) return count;
  }
  return read_count("/proc/vmstat");
}

std::optional<std::int64_t> available_memory() {
  constexpr std::int64_t kKibi = 1024;
  auto available = read_entry("/proc/meminfo", "MemAvailable:");
  if (available) *available *= kKibi;
  auto group = find_cgroup("memory");
  if (!group) return available;
  for (auto directory = group->directory; directory.size() >= group->mount.size();) {
    auto left = left_in(group->version, directory);
    if (left) available = available ? std::min(*available, *left) : *left;
    directory.resize(directory.rfind('/'));
  }
  return available;
}

}  // namespace taas
