#include "proc/family/exits.hpp"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <random>

#include "proc/processes.hpp"

namespace exits_test {

using namespace taas;
using namespace taas::test;

namespace {

ExitStatus run(const std::string& script) {
  auto child = spawn(shell(script));
  REQUIRE(child.has_value());
  return wait_for_exit(std::move(*child));
}

/// A process that ends when its stdin does.
struct OnCommand {
  Child child;
  Fd release;
};

OnCommand start_on_command() {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  SpawnRequest request;
  request.argv = {"/bin/cat"};
  request.standard_input = &pipe->read;
  auto child = spawn(request);
  REQUIRE(child.has_value());
  return {std::move(*child), std::move(pipe->write)};
}

/// Returns when it has ended; it stays a zombie.
void wait_until_zombie(int pid) {
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
}

}  // namespace

TEST_CASE("exit codes and signals are told as they are") {
  CHECK(run("exit 0").success());
  CHECK(run("exit 42").code == 42);
  auto killed = run("kill -KILL $$");
  CHECK(killed.signal == SIGKILL);
  CHECK_FALSE(killed.success());
  CHECK(run("ulimit -c 0; kill -SEGV $$").signal == SIGSEGV);
}

TEST_CASE("exits are told in the order in which they happened, however late the loop looks") {
  constexpr int kCount = 16;
  std::mt19937 random(1);
  for (int round = 0; round < 25; ++round) {
    boost::asio::io_context io;
    std::vector<int> told, expected;
    std::vector<OnCommand> processes;
    std::vector<ExitWatch> watches;
    for (int i = 0; i < kCount; ++i) {
      processes.push_back(start_on_command());
      auto pid = processes.back().child.pid;
      watches.emplace_back(io, std::move(processes.back().child),
                           [&, pid](ExitStatus, Instant) { told.push_back(pid); });
    }
    std::vector<std::size_t> order(kCount);
    for (std::size_t i = 0; i < kCount; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    for (auto index : order) {
      processes[index].release.reset();
      wait_until_zombie(watches[index].pid());
      expected.push_back(watches[index].pid());
    }
    REQUIRE(run_until(io, [&] { return told.size() == kCount; }));
    REQUIRE(told == expected);
  }
}

TEST_CASE("a process that ended before it was watched is told as well") {
  auto child = spawn(shell("exit 3"));
  REQUIRE(child.has_value());
  wait_until_zombie(child->pid);
  CHECK(wait_for_exit(std::move(*child)).code == 3);
}

TEST_CASE("the callback may destroy its watch") {
  boost::asio::io_context io;
  auto child = spawn(shell("exit 0"));
  REQUIRE(child.has_value());
  std::unique_ptr<ExitWatch> watch;
  bool told = false;
  watch = std::make_unique<ExitWatch>(io, std::move(*child), [&](ExitStatus, Instant) {
    watch.reset();
    told = true;
  });
  CHECK(run_until(io, [&] { return told; }));
}

TEST_CASE("a watch that is dropped leaves the process alone") {
  auto process = start_on_command();
  auto pid = process.child.pid;
  {
    boost::asio::io_context io;
    ExitWatch watch(io, std::move(process.child), [](ExitStatus, Instant) { FAIL("told after the watch is gone"); });
  }
  CHECK(::kill(pid, 0) == 0);
  process.release.reset();
  int status = -1;
  CHECK(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
}

TEST_CASE("signal_group reaches the whole group while the leader lives and nothing after") {
  boost::asio::io_context io;
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto request = shell("sleep 1000 & echo ready; wait");
  request.standard_output = &pipe->write;
  auto child = spawn(request);
  REQUIRE(child.has_value());
  pipe->write.reset();
  REQUIRE(read_line(pipe->read) == "ready");
  ExitWatch watch(io, std::move(*child), [](ExitStatus, Instant) {});
  watch.signal_group(SIGTERM);
  CHECK(run_until(io, [&] { return !watch.running(); }));
  CHECK(read_to_end(pipe->read).empty());  // the grandchild is gone too
  watch.signal_group(SIGKILL);             // the number may be another's by now
}

}  // namespace exits_test
