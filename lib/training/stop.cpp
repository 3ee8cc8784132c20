#include "taas/stop.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>

namespace taas {
namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

const char* stop_file() {
  static const char* const path = std::getenv("TAAS_STOP_REQUESTED");
  return path;
}

/// SLURM signals every process of a job, ranks perhaps before the launcher, which makes the file.
constexpr timespec kPatience{0, 500'000'000};
timer_t patience{};
bool in_a_job = false;

// Only what a signal handler may call.

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void on_signal(int signal) {
  if (signal != SIGTERM) return;  // a warning: the file says the same
  if (should_checkpoint()) return received.store(signal);
  itimerspec once{{}, kPatience};
  if (!in_a_job || ::timer_settime(patience, 0, &once, nullptr) != 0) end_by(signal);
}

void on_patience_over(int) { should_checkpoint() ? received.store(SIGTERM) : end_by(SIGTERM); }

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void wait_for_launcher() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN + 7;
  in_a_job = std::getenv("SLURM_JOB_ID") != nullptr && ::timer_create(CLOCK_MONOTONIC, &event, &patience) == 0;
  if (in_a_job) handle(event.sigev_signo, on_patience_over);
}

}  // namespace

bool should_checkpoint() {
  const char* path = stop_file();
  return path != nullptr && ::access(path, F_OK) == 0;
}

void catch_stop_signals() {
  stop_file();  // read before a handler needs it
  if (stop_file() == nullptr) return;
  wait_for_launcher();
  for (int signal : {SIGTERM, SIGUSR1, SIGUSR2}) handle(signal, on_signal);
}

int stop_signal() { return received.load(); }

}  // namespace taas
