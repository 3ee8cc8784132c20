#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/fd.hpp"

namespace taas::storage {

/// A forked child that does one thing, says so, and then stays until it is killed.
class ChildProcess {
 public:
  template <class Work>
  explicit ChildProcess(Work work) {
    auto told = make_pipe().value();
    pid_ = ::fork();
    if (pid_ == 0) {
      work();
      [[maybe_unused]] auto count = ::write(told.write.get(), "x", 1);
      for (;;) ::pause();
    }
    told.write.reset();
    char byte = 0;
    done_ = ::read(told.read.get(), &byte, 1) == 1;
  }
  ~ChildProcess() {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] bool done() const { return done_; }
  void kill() const { ::kill(pid_, SIGKILL); }
  /// Waits until it is dead, and leaves it a zombie.
  void wait_dead() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

 private:
  int pid_ = -1;
  bool done_ = false;
};

}  // namespace taas::storage
