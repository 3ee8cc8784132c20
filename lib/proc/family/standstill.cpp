#include "proc/family/standstill.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "base/files.hpp"

namespace taas {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(5);
constexpr auto kNextLook = std::chrono::microseconds(100);  // the kernel tells only a parent of it
constexpr int kAttempts = 20;
constexpr auto kRunsOn = std::chrono::microseconds(300);  // between two attempts

/// Whether it does nothing: stopped, traced, or gone.
bool stands_still(const Process& process) {
  const auto now = read_process(process.pid);
  return !now || std::string_view("TtZX").find(now->state) != std::string_view::npos;
}

/// Whether its main thread was stopped outside of the kernel, or as it opened a file: "-1 …" or the call's number.
bool may_be_about_to_open(const Process& process) {
  const auto call = read_file("/proc/" + std::to_string(process.pid) + "/syscall");
  if (!call || call->empty()) return false;
  const long number = std::strtol(call->c_str(), nullptr, 10);
  const bool opens = number == SYS_openat;
  return number < 0 || opens || call->starts_with("running");
}

void stop(const std::vector<Process>& processes) {
  signal_processes(processes, {SIGSTOP});
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!std::all_of(processes.begin(), processes.end(), stands_still) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kNextLook);
  }
}

}  // namespace

Standstill::Standstill(const std::vector<Process>& processes) {
  std::remove_copy_if(processes.begin(), processes.end(), std::back_inserter(held_), stands_still);
  auto moving = held_;
  for (int attempt = 0; attempt < kAttempts && !moving.empty(); ++attempt) {
    if (attempt > 0) {
      signal_processes(moving, {SIGCONT});
      std::this_thread::sleep_for(kRunsOn);
    }
    stop(moving);
    moving.erase(std::remove_if(moving.begin(), moving.end(), std::not_fn(may_be_about_to_open)), moving.end());
  }
}

Standstill::~Standstill() { signal_processes(held_, {SIGCONT}); }

}  // namespace taas
