#include "proc/inspect/thread_facts.hpp"

#include "catch.hpp"
#include "proc/processes.hpp"

namespace thread_facts_test {

using namespace taas;
using namespace taas::test;

TEST_CASE("the kernel's counts of a thread are read") {
  const auto times = parse_run_times("12345678 2345 99\n");
  REQUIRE(times);
  CHECK(times->run_ns == 12345678);
  CHECK(times->queued_ns == 2345);
  CHECK(times->switches == 99);
  CHECK_FALSE(parse_run_times(""));
  CHECK_FALSE(parse_run_times("1 2"));
}

TEST_CASE("a system call is read, and a thread that runs is in none") {
  const auto call = parse_system_call("202 0x7f00 0x80 0x2 0x0 0x0 0xffffffff 0x7ffd 0x7f11\n");
  REQUIRE(call);
  CHECK(call->number == 202);
  CHECK(call->arguments[1] == 0x80);
  CHECK(call->arguments[5] == 0xffffffff);
  CHECK_FALSE(parse_system_call("running\n"));
  CHECK_FALSE(parse_system_call("-1 0x7ffd 0x7f11\n"));
  CHECK_FALSE(parse_system_call(""));
}

TEST_CASE("a process that waits is seen to, and to use nothing") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto request = shell("echo; exec sleep 1000");
  request.standard_output = &pipe->write;
  auto child = spawn(request);
  REQUIRE(child.has_value());
  read_line(pipe->read);
  const int pid = child->pid;
  CHECK(threads_of(pid) == std::vector<int>{pid});
  const auto times = read_run_times(pid);
  REQUIRE(times);
  CHECK(times->switches > 0);
  const auto use = read_use(pid);
  CHECK(use.cpu_ns >= times->run_ns);
  CHECK(use.io_bytes > 0);
  const auto thread = read_thread(pid, pid);
  REQUIRE(thread);
  CHECK(thread->tid == pid);
  CHECK((thread->name == "sh" || thread->name == "sleep"));
  CHECK(target_of_descriptor(pid, 1).starts_with("pipe:["));
  CHECK(target_of_descriptor(pid, 99).empty());
  ::kill(pid, SIGKILL);
  wait_for_exit(std::move(*child));
  CHECK_FALSE(read_thread(pid, pid));
  CHECK_FALSE(read_run_times(pid));
  CHECK(threads_of(pid).empty());
}

}  // namespace thread_facts_test
