#include "storage/liveness.hpp"

#include "catch.hpp"
#include "child_process.hpp"

namespace liveness_test {

using namespace taas::storage;

TEST_CASE("a process is alive until it dies, also when nobody has reaped it") {
  CHECK(process_is_alive(::getpid()));
  int pid = 0;
  {
    ChildProcess child([] {});
    pid = child.pid();
    CHECK(process_is_alive(pid));
    child.kill();
    child.wait_dead();
    CHECK_FALSE(process_is_alive(pid));
  }
  CHECK_FALSE(process_is_alive(pid));
}

TEST_CASE("writers are alive until the first of them ends or dies") {
  WritingProcesses writers;
  CHECK(writers.all_alive());
  writers.add(::getpid());
  CHECK(writers.all_alive());
  SECTION("one has ended") { writers.one_ended(); }
  SECTION("one has died and nobody knows yet") {
    ChildProcess child([] {});
    writers.add(child.pid());
    CHECK(writers.all_alive());
    child.kill();
    child.wait_dead();
    CHECK_FALSE(writers.all_alive());
    writers.one_ended();
  }
  CHECK_FALSE(writers.all_alive());
  writers.clear();
  CHECK(writers.all_alive());
}

}  // namespace liveness_test
