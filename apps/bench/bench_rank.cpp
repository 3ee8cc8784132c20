// bench_rank FOLDER FAILING MODE: a rank whose steps leave their instants (CLOCK_MONOTONIC, ns) and its process id
// behind in FOLDER/<step>-<generation>-<rank>. In generation 0 rank FAILING waits for all, then exits with 7; the
// others go on until they are stopped. They do not wait: of many ranks that look for each other a machine sees nothing
// else. MODE ignore: they ignore SIGTERM. A later generation ends at once.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value) std::exit(2);
  return value;
}

/// The instant of the call, under a name that is there only when the file is whole.
void note(const std::string& folder, const std::string& name) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  auto text = std::to_string(now.tv_sec * 1'000'000'000LL + now.tv_nsec) + " " + std::to_string(::getpid()) + "\n";
  auto path = folder + "/" + name;
  auto unfinished = path + ".part";
  int file = ::open(unfinished.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || ::write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::exit(3);
  ::close(file);
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) std::exit(3);
}

void wait_for_all(const std::string& folder, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    auto path = folder + "/start-0-" + std::to_string(rank);
    while (::access(path.c_str(), F_OK) != 0) ::usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string folder = argv[1];
  const std::string rank = environment("RANK");
  const std::string generation = environment("TORCHELASTIC_RESTART_COUNT");
  if (argv[3] == std::string("ignore")) std::signal(SIGTERM, SIG_IGN);
  note(folder, "start-" + generation + "-" + rank);
  if (generation != "0") return 0;
  if (rank == argv[2]) {
    wait_for_all(folder, std::atoi(environment("WORLD_SIZE").c_str()));
    // Time for the last one to get from its file to its pause, where the failure must find it.
    ::usleep(100'000);
    note(folder, "fail-0-" + rank);
    return 7;
  }
  for (;;) ::pause();
}
