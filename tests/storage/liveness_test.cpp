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

}  // namespace liveness_test
