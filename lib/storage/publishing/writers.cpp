#include "storage/publishing/writers.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "base/files.hpp"

namespace taas::storage {
namespace {

namespace fs = std::filesystem;

constexpr auto kRaisedCounts = std::chrono::seconds(30);  // whoever raised and lives by then has caught it
constexpr std::string_view kRemoved = " (deleted)";       // the kernel's words for a file without a name

/// The flags of open(2) with which a process has it open; nothing when it has closed it meanwhile.
std::optional<int> open_flags(int pid, const std::string& descriptor) {
  auto text = read_file(fmt::format("/proc/{}/fdinfo/{}", pid, descriptor));
  if (!text) return std::nullopt;
  auto at = text->find("flags:");
  if (at == text->npos) return std::nullopt;
  return static_cast<int>(std::strtol(text->c_str() + at + 6, nullptr, 8));
}

void add_written(int pid, const std::string& folder, std::map<std::string, int>& found) {
  std::map<std::string, int> own;
  std::error_code failure;
  fs::directory_iterator entry(fmt::format("/proc/{}/fd", pid), failure), end;
  for (; !failure && entry != end; entry.increment(failure)) {
    std::error_code gone;
    auto path = fs::read_symlink(entry->path(), gone).string();
    if (gone || path.rfind(folder + "/", 0) != 0) continue;
    const auto flags = open_flags(pid, entry->path().filename().string());
    if (!flags || (*flags & O_ACCMODE) == O_RDONLY) continue;
    const bool removed =
        path.size() > kRemoved.size() && path.compare(path.size() - kRemoved.size(), path.npos, kRemoved) == 0;
    if (!removed) ++own[path.substr(folder.size() + 1)];
  }
  for (const auto& [name, count] : own) found[name] = std::max(found[name], count);
}

}  // namespace

bool process_is_alive(int pid) {
  auto text = read_file(fmt::format("/proc/{}/stat", pid));
  if (!text) return false;
  auto name_end = text->rfind(')');  // the program's name may hold anything, parentheses included
  if (name_end == std::string::npos) return false;
  std::istringstream fields(text->substr(name_end + 1));
  char state = 'X';
  long parent = 0, group = 0, session = 0, terminal = 0, terminal_group = 0;
  unsigned flags = 0;
  fields >> state >> parent >> group >> session >> terminal >> terminal_group >> flags;
  constexpr unsigned kExiting = 0x4;  // the kernel's PF_EXITING, set before a dying process' files are closed
  return fields && state != 'Z' && state != 'X' && (flags & kExiting) == 0;
}

void WritingProcesses::clear() {
  std::lock_guard lock(mutex_);
  processes_.clear();
  raised_.reset();
}

void WritingProcesses::add(int pid) {
  std::lock_guard lock(mutex_);
  processes_[pid] = std::nullopt;
}

void WritingProcesses::ended(int pid, WriterEnd end) {
  std::lock_guard lock(mutex_);
  processes_[pid] = end;
}

void WritingProcesses::raised(Instant now) {
  std::lock_guard lock(mutex_);
  raised_ = now;
}

int WritingProcesses::killed() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(std::count_if(processes_.begin(), processes_.end(),
                                        [](const auto& one) { return one.second == WriterEnd::kKilled; }));
}

WritersState WritingProcesses::look(Instant now, int killed_before) const {
  std::lock_guard lock(mutex_);
  auto worst = raised_ && now < *raised_ + kRaisedCounts ? WritersState::kRaised : WritersState::kWell;
  int killed = 0;
  for (const auto& [pid, end] : processes_) {
    if (!end && !process_is_alive(pid)) return WritersState::kUncertain;
    if (end == WriterEnd::kBadly) worst = std::max(worst, WritersState::kBadly);
    if (end == WriterEnd::kKilled && ++killed > killed_before) worst = WritersState::kKilled;
  }
  return worst;
}

std::map<std::string, int> names_being_written(const std::vector<int>& pids, const HeldFolder& folder) {
  std::map<std::string, int> found;
  std::error_code failure;
  const auto path = fs::read_symlink(fmt::format("/proc/self/fd/{}", folder.descriptor().get()), failure).string();
  if (failure) return found;
  for (int pid : pids) add_written(pid, path, found);
  return found;
}

}  // namespace taas::storage
