#include "proc/spawn/process_end.hpp"

#include <boost/asio/io_context.hpp>

#include "proc/processes.hpp"

namespace process_end_test {

using namespace taas;
using namespace taas::test;

TEST_CASE("the end of a process is told once") {
  auto child = spawn(shell("sleep 60"));
  REQUIRE(child.has_value());
  boost::asio::io_context io;
  int told = 0;
  REQUIRE(on_process_end(io, child->pid, [&told] { ++told; }).has_value());
  io.poll();
  CHECK(told == 0);
  ::kill(-child->pid, SIGKILL);
  io.restart();
  while (told == 0) io.run_one();
  CHECK(told == 1);
  wait_for_exit(std::move(*child));
}

TEST_CASE("a process that is not there is an error") {
  auto child = spawn(shell("true"));
  REQUIRE(child.has_value());
  int pid = child->pid;
  wait_for_exit(std::move(*child));
  boost::asio::io_context io;
  auto watched = on_process_end(io, pid, [] { FAIL("it was never there"); });
  REQUIRE(watched.has_error());
  CHECK(watched.error().message == std::to_string(pid) + ": there is no such process");
}

}  // namespace process_end_test
