// spawn_loop COUNT PROGRAM [ARGUMENT]…: the least that any launcher has to do. Starts COUNT processes with posix_spawn,
// waits for all of them, and ends with the first exit status that is not 0.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<pid_t> processes(static_cast<std::size_t>(std::atoi(argv[1])));
  for (pid_t& process : processes) {
    if (::posix_spawnp(&process, argv[2], nullptr, nullptr, argv + 2, environ) != 0) return 127;
  }
  int result = 0;
  for (pid_t process : processes) {
    int status = 0;
    if (::waitpid(process, &status, 0) != process) return 1;
    if (result == 0 && status != 0) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return result;
}
