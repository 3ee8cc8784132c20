#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <utility>

namespace taas {

/// A thread that no signal is delivered to: signals are the program's, and a closed connection is an error, no SIGPIPE.
inline std::thread quiet_thread(std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(run));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace taas
