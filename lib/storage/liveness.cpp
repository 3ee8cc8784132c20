#include "storage/liveness.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/files.hpp"

namespace taas::storage {

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
  pids_.clear();
  one_ended_ = false;
}

void WritingProcesses::add(int pid) {
  std::lock_guard lock(mutex_);
  pids_.push_back(pid);
}

void WritingProcesses::one_ended() {
  std::lock_guard lock(mutex_);
  one_ended_ = true;
}

bool WritingProcesses::all_alive() const {
  std::lock_guard lock(mutex_);
  return !one_ended_ && std::all_of(pids_.begin(), pids_.end(), process_is_alive);
}

}  // namespace taas::storage
