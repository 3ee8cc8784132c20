#pragma once

#include <csignal>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace taas {

/// Begins a thread that no signal is delivered to: signals are the program's, and a closed connection is an error, no
/// SIGPIPE. An error where the system starts no further one: limits of processes count threads as well.
inline Result<> begin_quietly(std::thread& thread, std::function<void()> run) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<> begun;
  try {
    thread = std::thread(std::move(run));
  } catch (const std::system_error& refused) {
    begun = system_error("no thread can be started", refused.code().value());
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return begun;
}

}  // namespace taas
