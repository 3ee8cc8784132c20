#include "taas/stop.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "catch.hpp"

namespace stop_test {

namespace {

/// The test framework reports the signals that end it as failures, in a child too.
void default_signals() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
}

/// The exit status of a process of its own that does this: what is looked at here is read once in a process.
int in_a_process(const std::function<int()>& body) {
  auto pid = ::fork();
  if (pid == 0) {
    default_signals();
    ::_exit(body());
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return status;
}

std::string wish() {
  return (std::filesystem::temp_directory_path() / ("taas-stop-" + std::to_string(::getpid()))).string();
}

}  // namespace

TEST_CASE("a stop that no launcher has announced ends the process") {
  for (const bool launched : {false, true}) {
    const auto path = wish();
    const int status = in_a_process([&] {
      ::unsetenv("SLURM_JOB_ID");
      launched ? ::setenv("TAAS_STOP_REQUESTED", path.c_str(), 1) : ::unsetenv("TAAS_STOP_REQUESTED");
      taas::catch_stop_signals();
      if (taas::should_checkpoint()) return 1;
      ::raise(SIGTERM);
      return 2;
    });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGTERM);
  }
}

TEST_CASE("a checkpoint is asked for once the file is there") {
  auto path = wish();
  int status = in_a_process([&path] {
    ::setenv("TAAS_STOP_REQUESTED", path.c_str(), 1);
    taas::catch_stop_signals();
    if (taas::should_checkpoint()) return 1;
    ::raise(SIGUSR1);  // a warning that comes before the file
    std::ofstream file(path);
    if (!taas::should_checkpoint()) return 2;
    ::raise(SIGUSR2);
    if (taas::stop_signal() != 0) return 3;
    ::raise(SIGTERM);
    return taas::stop_signal() == SIGTERM ? 0 : 4;
  });
  std::filesystem::remove(path);
  CHECK(status == 0);
}

TEST_CASE("in a SLURM job the signal may come before the file") {
  auto path = wish();
  int status = in_a_process([&path] {
    ::setenv("TAAS_STOP_REQUESTED", path.c_str(), 1);
    ::setenv("SLURM_JOB_ID", "1", 1);
    taas::catch_stop_signals();
    ::raise(SIGTERM);
    if (taas::stop_signal() != 0) return 1;
    std::ofstream file(path);
    while (taas::stop_signal() == 0) ::pause();
    return 0;
  });
  std::filesystem::remove(path);
  CHECK(status == 0);
}

}  // namespace stop_test
