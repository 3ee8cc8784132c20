#include "proc/family/audience.hpp"

#include <signal.h>

#include <algorithm>
#include <string>

#include "proc/processes.hpp"

namespace audience_test {

using namespace taas;
using namespace taas::test;
using Response = Disposition::Response;

namespace {

/// A process of a piece of the tree, as a table has it.
struct Row {
  int pid;
  int parent;
  Response response;
  std::string program;
};

using Pids = std::vector<int>;

Pids chosen(const std::vector<Row>& rows, Audience audience = Audience::kAll) {
  std::vector<Process> members;
  for (const auto& row : rows) members.push_back({.pid = row.pid, .parent = row.parent});
  auto look = [&rows](const Process& process) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.pid == process.pid; });
    return Disposition{row->response, row->program};
  };
  Pids pids;
  for (const auto& process : choose_recipients(members, audience, look)) pids.push_back(process.pid);
  std::sort(pids.begin(), pids.end());
  return pids;
}

constexpr auto kDefault = Response::kDefault;
constexpr auto kIgnores = Response::kIgnores;
constexpr auto kHandles = Response::kHandles;
const std::string kPython = "/usr/bin/python3";
const std::string kBash = "/usr/bin/bash";

}  // namespace

TEST_CASE("who handles a signal gets it alone: its workers are its own") {
  CHECK(chosen({{1, 0, kHandles, kPython}, {2, 1, kHandles, kPython}, {3, 1, kDefault, "/usr/bin/ffmpeg"}}) == Pids{1});
}

TEST_CASE("who does not handle it gets it with all of its workers") {
  CHECK(chosen({{1, 0, kDefault, kPython}, {2, 1, kHandles, kPython}, {3, 1, kDefault, kPython}}) == Pids{1, 2, 3});
}

TEST_CASE("behind a shell the program is told, and its workers are not") {
  for (auto response : {kDefault, kHandles, kIgnores}) {
    auto told = chosen({{1, 0, response, kBash}, {2, 1, kHandles, kPython}, {3, 2, kHandles, kPython}});
    CHECK(told == (response == kIgnores ? Pids{2} : Pids{1, 2}));
  }
}

TEST_CASE("who ignores a signal keeps its workers, and what it only waits for is told") {
  CHECK(chosen({{1, 0, kIgnores, kPython}, {2, 1, kHandles, kPython}, {3, 2, kDefault, kPython}}).empty());
  CHECK(chosen({{1, 0, kIgnores, "/usr/bin/time"}, {2, 1, kHandles, kPython}, {3, 2, kHandles, kPython}}) == Pids{2});
}

TEST_CASE("what somebody left behind is told by the same rule") {
  CHECK(chosen({{5, 99, kDefault, kPython}, {6, 99, kHandles, kPython}, {7, 6, kDefault, kPython}}) == Pids{5, 6});
}

TEST_CASE("a signal that asks for something goes to those who handle it only") {
  std::vector<Row> rows{{1, 0, kDefault, kBash}, {2, 1, kHandles, kPython}, {3, 2, kDefault, kPython}};
  CHECK(chosen(rows, Audience::kHandlers) == Pids{2});
  CHECK(chosen({{1, 0, kDefault, kPython}, {2, 1, kDefault, kPython}}, Audience::kHandlers).empty());
}

TEST_CASE("what a process makes of a signal is read off the kernel") {
  auto response_of = [](const std::string& before, int signal) {
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    auto request = shell(before + " echo ready; read forever <&3");
    auto held = make_pipe();
    REQUIRE(held.has_value());
    request.standard_output = &pipe->write;
    request.inherited = {&held->read};
    auto child = spawn(request);
    REQUIRE(child.has_value());
    pipe->write.reset();
    REQUIRE(read_line(pipe->read) == "ready");
    auto seen = read_disposition(child->pid, signal);
    held->write.reset();
    wait_for_exit(std::move(*child));
    REQUIRE(seen.has_value());
    CHECK_FALSE(seen->program.empty());
    CHECK_FALSE(seen->stopped);
    return seen->response;
  };
  CHECK(response_of("", SIGTERM) == kDefault);
  CHECK(response_of("trap '' TERM;", SIGTERM) == kIgnores);
  CHECK(response_of("trap 'exit 1' TERM;", SIGTERM) == kHandles);
  CHECK(response_of("trap 'exit 1' TERM;", SIGUSR2) == kDefault);
}

TEST_CASE("a process that waits for a blocked signal handles it") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto pid = ::fork();
  if (pid == 0) {
    sigset_t term;
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &term, nullptr);
    if (!write_all(pipe->write, "ready\n")) ::_exit(1);
    ::_exit(::sigwaitinfo(&term, nullptr) == SIGTERM ? 0 : 2);
  }
  REQUIRE(read_line(pipe->read) == "ready");
  while (read_file("/proc/" + std::to_string(pid) + "/wchan")->find("sigtimedwait") == std::string::npos) ::usleep(100);
  CHECK(read_disposition(pid, SIGTERM)->response == kHandles);
  ::kill(pid, SIGTERM);
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("nothing is known of a process that is gone") {
  auto pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  CHECK_FALSE(read_disposition(pid, SIGTERM).has_value());
}

}  // namespace audience_test
