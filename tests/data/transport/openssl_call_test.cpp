#include "data/transport/openssl_call.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <thread>

#include "catch.hpp"

namespace openssl_call_test {

using namespace taas::data;

namespace {

std::atomic<bool> fork_has_begun = false;
std::atomic<bool> is_inside = false;

void tell_that_a_fork_has_begun() {
  fork_has_begun = true;
  fork_has_begun.notify_all();
}

/// At once: a sanitizer would look for the threads that a child does not have.
void end(int code) { ::syscall(SYS_exit_group, code); }

/// Calls fork while a thread is inside OpenSSL, which leaves it when the fork has begun. Returns the child's exit code:
/// 0 when nobody was inside at the moment of the fork, and the child can call OpenSSL and fork itself.
int fork_beside_a_call() {
  fork_has_begun = false;
  std::latch inside(1);
  std::thread caller([&] {
    const OpensslCall call;
    is_inside = true;
    inside.count_down();
    fork_has_begun.wait(false);
    is_inside = false;
  });
  inside.wait();
  const auto child = ::fork();
  if (child == 0) {
    if (is_inside) end(1);
    { const OpensslCall call; }
    const auto grandchild = ::fork();
    if (grandchild == 0) end(0);
    int status = 0;
    end(::waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 2);
  }
  caller.join();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a fork waits until no thread is inside OpenSSL") {
  // What is registered later is run earlier before a fork: the thread hears of it before the fork waits for the thread.
  static const int registered = ::pthread_atfork(tell_that_a_fork_has_begun, nullptr, nullptr);
  REQUIRE(registered == 0);
  for (int i = 0; i < 20; ++i) REQUIRE(fork_beside_a_call() == 0);
}

}  // namespace openssl_call_test
