#include "data_workers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace taas::test {
namespace {

Fd listen_at(const std::string& path) {
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  bool listens = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
                 ::listen(fd.get(), 16) == 0;
  if (!listens) throw std::runtime_error("no socket at " + path);
  return fd;
}

[[noreturn]] void become(const char* program, const char* const* environment, int listener, pid_t parent) {
  constexpr int kListener = 3;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool inherits = listener == kListener ? ::fcntl(listener, F_SETFD, 0) == 0 : ::dup2(listener, kListener) == kListener;
  if (::getppid() != parent || !inherits) ::_exit(126);
  const std::array<const char*, 2> arguments{program, nullptr};
  ::execve(program, const_cast<char* const*>(arguments.data()), const_cast<char* const*>(environment));
  ::_exit(127);
}

}  // namespace

DataWorkers::DataWorkers(int count, const DataWorkersOptions& options) {
  auto pattern = (std::filesystem::temp_directory_path() / "taas-data-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder like " + pattern);
  folder_ = pattern;
  for (int number = 0; number < count; ++number) {
    auto path = folder_ + "/" + std::to_string(number);
    workers_.push_back({listen_at(path), path});
  }
  write_plan(options);
  ::setenv("TAAS_DATA_PLAN", (folder_ + "/plan.json").c_str(), 1);
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) start(worker);
}

DataWorkers::~DataWorkers() {
  ::unsetenv("TAAS_DATA_PLAN");
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) kill(worker);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void DataWorkers::write_plan(const DataWorkersOptions& options) const {
  std::string list;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    list += std::string(worker > 0 ? "," : "") + R"({"name":"worker )" + std::to_string(worker) +
            R"(","address":"","port":0,"unix":")" + workers_[worker].path + R"("})";
  }
  std::ofstream(folder_ + "/plan.json")
      << R"({"run":"test","key":")" << std::string(64, '7') << R"(","workers":[)" << list
      << R"(],"encryption":"plain","compression":"none","buffer_bytes":16777216,"units":)" << options.units
      << R"(,"on_error":")" << options.on_error << R"(","loader":")" << options.loader << R"(","world_size":)"
      << options.world_size << "}";
}

void DataWorkers::start(std::size_t worker) {
  std::vector<std::string> variables{"TAAS_ROLE=data-worker", "TAAS_DATA_PLAN=" + folder_ + "/plan.json",
                                     "TAAS_DATA_LISTEN=-,3", "TAAS_DATA_WORKER=" + std::to_string(worker),
                                     "OMP_NUM_THREADS=1"};
  for (const auto* name : {"TAAS_EVENTS", "TAAS_TEST_GETS"}) {
    if (const char* value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  }
  std::vector<const char*> environment;
  for (const auto& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  const pid_t self = ::getpid();
  const int listener = workers_[worker].listener.get();
  const pid_t pid = ::fork();
  if (pid == 0) become(TAAS_DATA_WORKER_PROGRAM, environment.data(), listener, self);
  if (pid < 0) throw std::runtime_error("cannot fork a data worker");
  workers_[worker].pid = pid;
}

void DataWorkers::kill(std::size_t worker) {
  auto& pid = workers_[worker].pid;
  if (pid < 0) return;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  pid = -1;
}

}  // namespace taas::test
