#include "proc/family/descendants.hpp"

#include <signal.h>

#include <algorithm>

#include "proc/processes.hpp"

namespace descendants_test {

using namespace taas;
using namespace taas::test;

namespace {

/// A shell tree that reports each of its process numbers on a line, and whose members hold the pipe while they live.
struct Tree {
  Tree(const std::string& script, int size) {
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    auto request = shell(script);
    request.standard_output = &pipe->write;
    auto child = spawn(request);
    REQUIRE(child.has_value());
    pipe->write.reset();
    alive = std::move(pipe->read);
    for (int i = 0; i < size; ++i) pids.insert(std::stoi(read_line(alive)));
  }
  Fd alive;
  std::set<int> pids;
};

/// A child, its child, and an orphan in a session of its own made by forking twice.
constexpr auto kFamily =
    "echo $$; (sh -c 'echo $$; exec sleep 1000') & setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 1000\" &)' & "
    "wait; exec sleep 1000";

std::set<int> numbers(const std::vector<Process>& processes) {
  std::set<int> result;
  for (const auto& process : processes) result.insert(process.pid);
  return result;
}

bool includes(const std::set<int>& all, const std::set<int>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

}  // namespace

TEST_CASE("descendants are found in other sessions and after their parent's end") {
  become_subreaper();
  Tree tree(kFamily, 3);
  CHECK(includes(numbers(descendants()), tree.pids));
  CHECK_FALSE(numbers(descendants()).contains(::getpid()));
  CHECK_FALSE(numbers(descendants()).contains(::getppid()));
  CHECK(kill_and_reap_descendants(std::chrono::seconds(20)).empty());
  CHECK(read_to_end(tree.alive).empty());
  CHECK(has_no_children());
  CHECK(descendants().empty());
}

TEST_CASE("what is below a spared process is spared with it") {
  become_subreaper();
  Tree spared("echo $$; sh -c 'echo $$; exec sleep 1000'; exit", 2);
  Tree other("echo $$; exec sleep 1000", 1);
  auto root = std::find_if(spared.pids.begin(), spared.pids.end(), [](int pid) { return ::getsid(pid) == pid; });
  REQUIRE(root != spared.pids.end());
  CHECK(numbers(descendants({*root})) == other.pids);
  kill_descendants({*root});
  CHECK(read_to_end(other.alive).empty());
  for (int pid : spared.pids) CHECK(::kill(pid, 0) == 0);
  CHECK(kill_and_reap_descendants(std::chrono::seconds(20)).empty());
}

TEST_CASE("a program that forks as fast as it is killed is killed") {
  become_subreaper();
  Tree tree("echo $$; while :; do (sleep 1000 &); sh -c 'sleep 1000' & done", 1);
  CHECK(kill_and_reap_descendants(std::chrono::seconds(20)).empty());
  CHECK(has_no_children());
  CHECK(read_to_end(tree.alive).empty());
}

TEST_CASE("a number that has gone to another process is not signalled") {
  become_subreaper();
  Tree tree("echo $$; exec sleep 1000", 1);
  auto found = descendants();
  REQUIRE(found.size() == 1);
  auto stale = found;
  stale[0].started -= 1;
  signal_processes(stale, {SIGKILL});
  int status = 0;
  CHECK(::waitpid(found[0].pid, &status, WNOHANG) == 0);
  signal_processes(found, {SIGTERM});
  CHECK(::waitpid(found[0].pid, &status, 0) == found[0].pid);
  CHECK(WTERMSIG(status) == SIGTERM);  // so the stale SIGKILL was not sent
}

}  // namespace descendants_test
