#include "proc/spawn/child_watch.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/quiet_thread.hpp"

namespace taas {
namespace {

/// Whoever reaps the child meanwhile ends this wait as well.
void wait_for_end(int pid) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
}

Result<Fd> watch_by_thread(int pid) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  std::thread thread;
  auto begun = begin_quietly(thread, [pid, end = std::make_shared<Fd>(std::move(pipe->write))] {
    wait_for_end(pid);
    end->reset();
  });
  if (!begun) return begun.error();
  thread.detach();
  return std::move(pipe->read);
}

}  // namespace

Result<Fd> watch_child(int pid) {
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return pidfd;
  if (errno == ENOSYS || errno == EPERM) return watch_by_thread(pid);
  return system_error("cannot watch a process", errno);
}

}  // namespace taas
