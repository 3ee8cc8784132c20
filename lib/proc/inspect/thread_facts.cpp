#include "proc/inspect/thread_facts.hpp"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "base/text.hpp"

namespace taas {
namespace {

std::string text_of(const std::string& path) {
  auto text = read_file(path);
  return text ? std::string(trim(*text, "\n")) : std::string();
}

/// The number behind a name at the beginning of a line.
std::uint64_t number_of(const std::string& text, std::string_view name) {
  const auto at = ("\n" + text).find(fmt::format("\n{}", name));
  std::uint64_t number = 0;
  if (at != std::string::npos) std::sscanf(text.c_str() + at + name.size(), " %" SCNu64, &number);
  return number;
}

}  // namespace

std::optional<RunTimes> parse_run_times(std::string_view text) {
  RunTimes times;
  const std::string terminated(text);
  const int fields = std::sscanf(terminated.c_str(), "%" SCNu64 " %" SCNu64 " %" SCNu64, &times.run_ns,
                                 &times.queued_ns, &times.switches);
  return fields == 3 ? std::optional(times) : std::nullopt;
}

std::optional<RunTimes> read_run_times(int pid) {
  auto text = read_file(fmt::format("/proc/{}/schedstat", pid));
  return text ? parse_run_times(*text) : std::nullopt;
}

std::optional<SystemCall> parse_system_call(std::string_view text) {
  SystemCall call;
  auto& a = call.arguments;
  const std::string terminated(text);
  const int fields =
      std::sscanf(terminated.c_str(), "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                  &call.number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]);
  return fields == 7 && call.number >= 0 ? std::optional(call) : std::nullopt;
}

std::optional<ThreadFacts> read_thread(int pid, int tid) {
  const auto folder = fmt::format("/proc/{}/task/{}", pid, tid);
  const auto stat = read_file(folder + "/stat");
  const auto name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return std::nullopt;
  ThreadFacts facts;
  facts.tid = tid;
  facts.state = (*stat)[name_end + 2];
  const auto name_begin = stat->find('(');
  facts.name = stat->substr(name_begin + 1, name_end - name_begin - 1);
  facts.place = text_of(folder + "/wchan");
  if (facts.place == "0") facts.place.clear();
  facts.call = parse_system_call(text_of(folder + "/syscall"));
  return facts;
}

std::vector<int> threads_of(int pid) {
  std::vector<int> result;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", pid), failed), end;
       !failed && entry != end; entry.increment(failed)) {
    result.push_back(std::atoi(entry->path().filename().c_str()));
  }
  std::ranges::sort(result);
  return result;
}

ProcessUse read_use(int pid) {
  ProcessUse use;
  for (int tid : threads_of(pid)) {
    auto text = read_file(fmt::format("/proc/{}/task/{}/schedstat", pid, tid));
    auto times = text ? parse_run_times(*text) : std::nullopt;
    if (times) use.cpu_ns += times->run_ns + times->queued_ns;
  }
  if (auto io = read_file(fmt::format("/proc/{}/io", pid)))
    use.io_bytes = number_of(*io, "rchar:") + number_of(*io, "wchar:");
  if (auto sizes = read_file(fmt::format("/proc/{}/statm", pid))) {
    std::uint64_t pages = 0;
    std::sscanf(sizes->c_str(), "%*u %" SCNu64, &pages);
    use.memory_bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  return use;
}

std::string target_of_descriptor(int pid, int descriptor) {
  char target[PATH_MAX];
  const auto length = ::readlink(fmt::format("/proc/{}/fd/{}", pid, descriptor).c_str(), target, sizeof(target));
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace taas
