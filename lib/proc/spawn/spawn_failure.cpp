#include "proc/spawn/spawn_failure.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>

#include "proc/spawn/spawn.hpp"

namespace taas {

Error describe(const SpawnFailure& failure, const SpawnRequest& request, const std::string& program) {
  int number = failure.system_errno;
  const auto& name = request.argv.front();
  switch (failure.step) {
    case SpawnStep::kStreams:
      return system_error(fmt::format("cannot connect the streams of {}", name), number);
    case SpawnStep::kSession:
      return system_error(fmt::format("cannot make a session for {}", name), number);
    case SpawnStep::kParent:
      return system_error(fmt::format("cannot tie {} to its launcher", name), number);
    case SpawnStep::kLimit:
      return system_error(fmt::format("cannot set the open-files limit of {}", name), number);
    case SpawnStep::kReadOnly:
      return system_error(fmt::format("cannot protect directories from {}", name), number);
    case SpawnStep::kDirectory:
      return system_error(fmt::format("cannot enter directory {}", request.working_directory.value_or("")), number);
    case SpawnStep::kProcessors:
      return system_error(fmt::format("cannot bind {} to its processors", name), number);
    case SpawnStep::kExec:
      break;
  }
  struct stat status {};
  bool interpreter_missing = number == ENOENT && ::stat(program.c_str(), &status) == 0;
  auto error = system_error(fmt::format("cannot execute {}", name), number);
  if (interpreter_missing) error.message += " (the interpreter in its first line, or its loader, does not exist)";
  if (number == ENOEXEC) error.message += " (no \"#!\" line, or made for another machine)";
  return error;
}

Error cannot_fork(const std::string& what, int system_errno) {
  auto error = system_error("cannot start " + what, system_errno);
  if (system_errno == EAGAIN) {
    error.message += " (processes count towards ulimit -u, and towards the pids limit of a container or job)";
  }
  return error;
}

void discard_child(int pid) {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace taas
