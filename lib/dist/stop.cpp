#include "taas/stop.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace taas {
namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

const char* stop_file() {
  static const char* const path = std::getenv("TAAS_STOP_REQUESTED");
  return path;
}

/// Only what a signal handler may call.
void on_signal(int signal) {
  if (signal != SIGTERM) return;  // a warning: the file says the same
  if (!should_checkpoint()) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  received.store(signal);
}

}  // namespace

bool should_checkpoint() {
  const char* path = stop_file();
  return path != nullptr && ::access(path, F_OK) == 0;
}

void catch_stop_signals() {
  stop_file();  // read before a handler needs it
  if (stop_file() == nullptr) return;
  for (int signal : {SIGTERM, SIGUSR1, SIGUSR2}) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

int stop_signal() { return received.load(); }

}  // namespace taas
