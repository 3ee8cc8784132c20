#include "proc/family/main_thread.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>

#include <cinttypes>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/files.hpp"

namespace taas {
namespace {

/// Fields 14 and 15 of proc(5), counted from the state, which is the third and follows the name.
std::optional<std::uint64_t> read_ticks(const std::string& task) {
  auto stat = read_file(task + "/stat");
  auto name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos) return std::nullopt;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  int fields = std::sscanf(stat->c_str() + name_end + 1,
                           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user, &system);
  return fields == 2 ? std::optional(user + system) : std::nullopt;
}

std::optional<std::uint64_t> read_switches(const std::string& task) {
  auto status = read_file(task + "/status");
  if (!status) return std::nullopt;
  std::uint64_t sum = 0;
  for (const char* name : {"\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:"}) {
    auto at = status->find(name);
    std::uint64_t number = 0;
    bool read =
        at != status->npos && std::sscanf(status->c_str() + at + std::string(name).size(), "%" SCNu64, &number) == 1;
    if (!read) return std::nullopt;
    sum += number;
  }
  return sum;
}

/// The system call by its number; where that is hidden, the place in the kernel by its name.
bool waits_for_lock(const std::string& task) {
  if (auto call = read_file(task + "/syscall")) return call->starts_with(fmt::format("{} ", SYS_futex));
  auto place = read_file(task + "/wchan");
  return place && place->find("futex") != place->npos;
}

}  // namespace

std::optional<MainThread> look_at_main_thread(int pid) {
  auto task = fmt::format("/proc/{}/task/{}", pid, pid);
  auto ticks = read_ticks(task);
  auto switches = read_switches(task);
  if (!ticks || !switches) return std::nullopt;
  return MainThread{*ticks, *switches, waits_for_lock(task)};
}

std::vector<std::string> read_command_line(int pid) {
  std::vector<std::string> words;
  auto line = read_file(fmt::format("/proc/{}/cmdline", pid));
  std::istringstream text(line ? *line : "");
  for (std::string word; std::getline(text, word, '\0');) words.push_back(std::move(word));
  return words;
}

}  // namespace taas
