#include "node/looks/wait_words.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/text.hpp"

namespace taas::node {
namespace {

using run::Wait;

constexpr const char* kLock = "a lock or another thread";

bool is_one_of(long number, std::initializer_list<long> calls) {
  return std::ranges::find(calls, number) != calls.end();
}

bool is_fifo(int pid, const std::string& path) {
  struct stat status {};
  return ::stat(fmt::format("/proc/{}/root{}", pid, path).c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

/// Text that an argument points to; empty: it cannot be read.
std::string text_at(int pid, std::uint64_t address) {
  constexpr std::size_t kPiece = 256;  // within one page at a time: the next one may not be there
  std::string text;
  while (text.size() < 4096) {
    char piece[kPiece];
    const auto length = kPiece - address % kPiece;
    iovec here{piece, length}, there{reinterpret_cast<void*>(address), length};
    if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(length)) return {};
    const auto* end = static_cast<const char*>(std::memchr(piece, 0, length));
    text.append(piece, end == nullptr ? length : static_cast<std::size_t>(end - piece));
    if (end != nullptr) return text;
    address += length;
  }
  return {};
}

/// A call on one descriptor, which is its first argument.
WaitWords on_descriptor(int pid, const SystemCall& call, bool reads) {
  const auto number = static_cast<int>(call.arguments[0]);
  const auto target = target_of_descriptor(pid, number);
  const bool terminal = target.starts_with("/dev/pts/") || target.starts_with("/dev/tty") || target == "/dev/console";
  if (reads && (terminal || number == 0)) return {Wait::kInput, number == 0 ? "its standard input" : target};
  if (terminal) return {Wait::kPipe, "its terminal to take what it writes"};
  if (target.starts_with("pipe:")) {
    return {Wait::kPipe, reads ? "a pipe that nothing comes from" : "a pipe that nobody reads from"};
  }
  if (target.starts_with("socket:"))
    return {Wait::kNetwork, reads ? "a peer on the network" : "a peer that does not read"};
  if (target.starts_with("anon_inode:")) return {Wait::kEvents, "an event"};
  if (target.starts_with('/') && is_fifo(pid, target)) return {Wait::kPipe, "the other end of " + printable(target)};
  return {Wait::kFile, target.empty() ? "a file" : printable(target)};
}

WaitWords on_opening(int pid, std::uint64_t path_at) {
  const auto path = text_at(pid, path_at);
  if (path.empty()) return {Wait::kFile, "a file to open"};
  const auto seen_here = path.starts_with('/') ? path : fmt::format("/proc/{}/cwd/{}", pid, path);
  if (is_fifo(pid, seen_here)) return {Wait::kPipe, "somebody to open the other end of " + printable(path)};
  return {Wait::kFile, printable(path) + " to open"};
}

WaitWords by_call(int pid, const SystemCall& call) {
  const auto number = call.number;
  const auto& arguments = call.arguments;
  if (is_one_of(number, {SYS_futex})) return {Wait::kLock, kLock};
  if (is_one_of(number, {SYS_clock_nanosleep, SYS_nanosleep})) return {Wait::kTime, "a time to pass"};
  if (is_one_of(number, {SYS_read, SYS_readv, SYS_pread64, SYS_recvfrom, SYS_recvmsg}))
    return on_descriptor(pid, call, true);
  if (is_one_of(number, {SYS_write, SYS_writev, SYS_pwrite64, SYS_sendto, SYS_sendmsg})) {
    return on_descriptor(pid, call, false);
  }
  if (number == SYS_openat) return on_opening(pid, arguments[1]);
#ifdef SYS_open
  if (number == SYS_open) return on_opening(pid, arguments[0]);
#endif
  if (is_one_of(number, {SYS_accept, SYS_accept4, SYS_connect})) return {Wait::kNetwork, "a peer on the network"};
  if (is_one_of(number, {SYS_wait4, SYS_waitid})) {
    const auto child = static_cast<int>(arguments[number == SYS_wait4 ? 0 : 1]);
    return {Wait::kChild, child > 0 ? fmt::format("process {} to end", child) : "a process to end"};
  }
  if (is_one_of(number, {SYS_flock, SYS_fcntl})) {
    return {Wait::kFile,
            fmt::format("a lock on {}", printable(target_of_descriptor(pid, static_cast<int>(arguments[0]))))};
  }
  if (is_one_of(number, {SYS_fsync, SYS_fdatasync, SYS_sync_file_range})) {
    return {Wait::kFile,
            fmt::format("the disk of {}", printable(target_of_descriptor(pid, static_cast<int>(arguments[0]))))};
  }
  if (is_one_of(number, {
                            SYS_ppoll,
                            SYS_pselect6,
                            SYS_epoll_pwait,
#ifdef SYS_poll
                            SYS_poll,
                            SYS_select,
                            SYS_epoll_wait,
#endif
                        })) {
    return {Wait::kEvents, "an event"};
  }
  if (is_one_of(number, {
                            SYS_rt_sigsuspend,
                            SYS_rt_sigtimedwait,
#ifdef SYS_pause
                            SYS_pause,
#endif
                        })) {
    return {Wait::kEvents, "a signal"};
  }
  return {Wait::kOther, fmt::format("system call {}", number)};
}

/// Names of Linux' own functions, over its versions.
WaitWords by_place(const std::string& place) {
  struct Known {
    std::string_view part;
    Wait wait;
    const char* words;
  };
  constexpr std::array<Known, 12> kKnown{{
      {"futex", Wait::kLock, kLock},
      {"nanosleep", Wait::kTime, "a time to pass"},
      {"wait_for_partner", Wait::kPipe, "somebody to open the other end of a FIFO"},
      {"pipe", Wait::kPipe, "the other end of a pipe"},
      {"n_tty_read", Wait::kInput, "a terminal"},
      {"do_wait", Wait::kChild, "a process to end"},
      {"ep_poll", Wait::kEvents, "an event"},
      {"poll", Wait::kEvents, "an event"},
      {"select", Wait::kEvents, "an event"},
      {"tcp", Wait::kNetwork, "a peer on the network"},
      {"skb", Wait::kNetwork, "a peer on the network"},
      {"sk_", Wait::kNetwork, "a peer on the network"},
  }};
  const auto found = std::ranges::find_if(kKnown, [&](const Known& known) { return contains(place, known.part); });
  if (found != kKnown.end()) return {found->wait, found->words};
  return {Wait::kOther, place.empty() ? "something" : fmt::format("{} (in the kernel)", place)};
}

}  // namespace

WaitWords describe_wait(int pid, const ThreadFacts& thread) {
  if (thread.state == 'R') return {};
  if (thread.state == 'T') return {Wait::kStopped, "a signal, until SIGCONT"};
  if (thread.state == 't') return {Wait::kStopped, "a debugger"};
  if (thread.state == 'Z' || thread.state == 'X') return {Wait::kOther, "its end"};
  auto words = thread.call ? by_call(pid, *thread.call) : by_place(thread.place);
  if (thread.state != 'D') return words;
  const bool known = words.wait == Wait::kFile || words.wait == Wait::kPipe;
  return {Wait::kDisk,
          fmt::format("{}; no signal reaches it there", known ? words.waits_for : "the kernel, mostly a disk")};
}

}  // namespace taas::node
