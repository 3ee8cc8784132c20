// A training process in miniature for the command-line tests: starts in a millisecond and does one thing.
//
//   rank_program [--barrier DIR] RANK=ACTION … [*=ACTION]
//
// Every rank announces itself in DIR and waits there until all have; then it does the ACTION of its rank:
//   exit:N            returns N
//   after:R:N         ignores SIGTERM, waits until rank R is dead, then 30 ms, then returns N
//   segfault          dies of a bad access
//   hog               takes memory until it is killed
//   stay              waits for ever, SIGTERM ends it
//   stubborn          waits for ever, ignores SIGTERM and SIGINT
//   graceful:N        waits; on SIGTERM or SIGINT prints "saved" and returns N
//   orphan            leaves a grandchild in a session of its own, writes its id to DIR/orphan-RANK, then stays
//   print:TEXT        prints TEXT and returns 0
//   flood:BYTES       writes that many bytes to stdout and returns 0
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

namespace {

int rank_number() { return std::atoi(std::getenv("RANK")); }
int world_size() { return std::atoi(std::getenv("WORLD_SIZE")); }
std::string generation() { return std::getenv("TORCHELASTIC_RESTART_COUNT"); }
std::string directory;

std::string ready_file(int rank) { return directory + "/ready-" + generation() + "-" + std::to_string(rank); }

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void barrier() {
  int watch = ::inotify_init1(IN_CLOEXEC);
  ::inotify_add_watch(watch, directory.c_str(), IN_MOVED_TO);
  std::string mine = ready_file(rank_number());
  { std::ofstream(mine + ".new") << ::getpid() << "\n"; }
  ::rename((mine + ".new").c_str(), mine.c_str());
  for (int rank = 0; rank < world_size(); ++rank) {
    while (!exists(ready_file(rank))) {
      pollfd waiting{watch, POLLIN, 0};
      ::poll(&waiting, 1, 1000);
      char events[4096];
      if (waiting.revents != 0 && ::read(watch, events, sizeof events) < 0) std::perror("inotify");
    }
  }
  ::close(watch);
}

int pid_of(int rank) {
  int pid = 0;
  std::ifstream(ready_file(rank)) >> pid;
  return pid;
}

[[noreturn]] void stay() {
  for (;;) ::pause();
}

volatile std::sig_atomic_t asked = 0;

int graceful(int code) {
  struct sigaction action {};
  action.sa_handler = [](int) { asked = 1; };
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  std::printf("waiting\n");
  std::fflush(stdout);
  while (asked == 0) ::usleep(1000);
  std::printf("saved\n");
  return code;
}

int after_death_of(int rank, int code) {
  std::signal(SIGTERM, SIG_IGN);
  int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid_of(rank), 0));
  if (pidfd >= 0) {
    pollfd waiting{pidfd, POLLIN, 0};
    ::poll(&waiting, 1, 60000);
  }
  ::usleep(30000);
  return code;
}

[[noreturn]] void leave_an_orphan() {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0) {
      std::signal(SIGTERM, SIG_IGN);
      std::string path = directory + "/orphan-" + std::to_string(rank_number());
      { std::ofstream(path + ".new") << ::getpid() << "\n"; }
      ::rename((path + ".new").c_str(), path.c_str());
      stay();
    }
    ::_exit(0);
  }
  stay();
}

[[noreturn]] void hog_memory() {
  for (;;) {
    constexpr std::size_t kChunk = 16 << 20;
    auto* memory = static_cast<volatile char*>(std::malloc(kChunk));
    for (std::size_t i = 0; memory != nullptr && i < kChunk; i += 4096) memory[i] = 1;
  }
}

int flood(long bytes) {
  std::string line(99, 'x');
  line += '\n';
  for (long written = 0; written < bytes; written += 100) {
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return 9;
  }
  return 0;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

int act(const std::string& action) {
  auto parts = split(action);
  const std::string& name = parts[0];
  if (name == "exit") return std::stoi(parts[1]);
  if (name == "after") return after_death_of(std::stoi(parts[1]), std::stoi(parts[2]));
  if (name == "segfault") *static_cast<volatile int*>(nullptr) = 1;
  if (name == "hog") hog_memory();
  if (name == "graceful") return graceful(std::stoi(parts[1]));
  if (name == "orphan") leave_an_orphan();
  if (name == "flood") return flood(std::stol(parts[1]));
  if (name == "print") {
    std::printf("%s\n", action.substr(6).c_str());
    return 0;
  }
  if (name == "stubborn") {
    std::signal(SIGTERM, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);
  }
  stay();
}

}  // namespace

int main(int argc, char** argv) {
  int first = 1;
  if (argc > 2 && std::strcmp(argv[1], "--barrier") == 0) {
    directory = argv[2];
    first = 3;
  }
  std::string action = "stay";
  for (int i = first; i < argc; ++i) {
    std::string word = argv[i];
    auto equals = word.find('=');
    std::string who = word.substr(0, equals);
    if (who == "*" && action == "stay") action = word.substr(equals + 1);
    if (who == std::to_string(rank_number())) action = word.substr(equals + 1);
  }
  if (!directory.empty()) barrier();
  return act(action);
}
