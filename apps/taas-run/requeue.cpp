#include "requeue.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace taas::cli {

void requeue(const std::string& job_id) {
  std::string command = "scontrol", verb = "requeue", job = job_id;
  char* const words[]{command.data(), verb.data(), job.data(), nullptr};
  pid_t child = -1;
  int failed = ::posix_spawnp(&child, words[0], nullptr, nullptr, words, environ);
  int status = 0;
  if (failed == 0 && ::waitpid(child, &status, 0) == child && status == 0) return;
  fmt::print(stderr, "taas-run: job {} could not be put back into the queue{}\n", job_id,
             failed != 0 ? fmt::format(": scontrol: {}", ::strerror(failed)) : "");
}

}  // namespace taas::cli
