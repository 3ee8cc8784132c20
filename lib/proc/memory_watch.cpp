#include "proc/memory_watch.hpp"

#include <charconv>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "proc/cgroup.hpp"

namespace taas {
namespace {

/// All three files have a line "oom_kill <number>".
std::optional<long> read_count(const std::string& path) {
  auto text = read_file(path);
  if (!text) return std::nullopt;
  constexpr std::string_view kKey = "\noom_kill ";
  std::string lines = "\n" + *text;
  auto at = lines.find(kKey);
  if (at == lines.npos) return std::nullopt;
  long count = 0;
  auto* begin = lines.data() + at + kKey.size();
  auto [rest, problem] = std::from_chars(begin, lines.data() + lines.size(), count);
  if (problem != std::errc()) return std::nullopt;
  return count;
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

}  // namespace taas
