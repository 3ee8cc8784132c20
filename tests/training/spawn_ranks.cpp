#include "spawn_ranks.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/fd.hpp"

namespace taas::test {
namespace {

/// A port of the loopback interface that was free just now.
std::uint16_t free_port() {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), generic, size) != 0 || ::getsockname(fd.get(), generic, &size) != 0) {
    throw std::runtime_error("no free port on the loopback interface");
  }
  return ntohs(address.sin_port);
}

std::vector<std::string> environment_of(int rank, const SpawnOptions& options, std::uint16_t port) {
  const auto size = std::to_string(options.world_size);
  std::vector<std::string> variables{"RANK=" + std::to_string(rank),
                                     "LOCAL_RANK=" + std::to_string(rank),
                                     "WORLD_SIZE=" + size,
                                     "LOCAL_WORLD_SIZE=" + size,
                                     "MASTER_ADDR=127.0.0.1",
                                     "MASTER_PORT=" + std::to_string(port),
                                     "OMP_NUM_THREADS=1",
                                     "TORCH_CPP_LOG_LEVEL=ERROR"};
  if (options.meeting != Meeting::kRankZero) variables.emplace_back("TORCHELASTIC_USE_AGENT_STORE=True");
  if (options.on_gpu) {
    variables.emplace_back("TAAS_TEST_ON_GPU=1");
    variables.emplace_back("CUBLAS_WORKSPACE_CONFIG=:4096:8");  // the same sums in each run of a kernel
  }
  if (options.share_gpu) {
    variables.push_back("NCCL_HOSTID=rank-" + std::to_string(rank));
    variables.emplace_back("NCCL_SOCKET_IFNAME=lo");
  }
  return variables;
}

struct Running {
  pid_t pid = -1;
  Fd output;
};

[[noreturn]] void become(const char* const* arguments, const char* const* environment, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent || ::dup2(output, STDOUT_FILENO) < 0) ::_exit(126);
  ::execve(arguments[0], const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  ::_exit(127);
}

Running start(const std::string& program, const std::string& argument, const std::vector<std::string>& variables) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe for the output of a rank");
  Fd read_end(ends[0]), write_end(ends[1]);
  std::vector<const char*> environment;
  for (const auto& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  const std::array<const char*, 3> arguments{program.c_str(), argument.c_str(), nullptr};
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(arguments.data(), environment.data(), write_end.get(), self);
  if (pid < 0) throw std::runtime_error("cannot fork a rank");
  return {pid, std::move(read_end)};
}

RankResult finish(const Running& rank) {
  RankResult result;
  std::array<char, 4096> buffer{};
  for (ssize_t got; (got = ::read(rank.output.get(), buffer.data(), buffer.size())) > 0;) {
    result.output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  if (::waitpid(rank.pid, &status, 0) != rank.pid) throw std::runtime_error("a rank was lost");
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

}  // namespace

std::vector<RankResult> spawn_ranks(const std::string& program, const std::string& argument,
                                    const SpawnOptions& options) {
  c10::intrusive_ptr<c10d::TCPStore> store;
  if (options.meeting == Meeting::kServed) {
    c10d::TCPStoreOptions served;
    served.port = 0;
    served.isServer = true;
    served.waitWorkers = false;
    store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", served);
  }
  const std::uint16_t port = store ? store->getPort() : free_port();
  std::vector<Running> running;
  for (int rank = 0; rank < options.world_size; ++rank) {
    running.push_back(start(program, argument, environment_of(rank, options, port)));
  }
  std::vector<RankResult> results;
  for (const auto& rank : running) results.push_back(finish(rank));
  return results;
}

std::string problems(const std::vector<RankResult>& results) {
  std::string text;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    if (results[rank].exit_code == 0) continue;
    text += "rank " + std::to_string(rank) + " exited with " + std::to_string(results[rank].exit_code) + ": " +
            results[rank].output;
  }
  return text;
}

}  // namespace taas::test
