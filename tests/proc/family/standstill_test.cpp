#include "proc/family/standstill.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "catch.hpp"

namespace standstill_test {

using namespace taas;

namespace {

/// A child that sends a byte again and again, as fast as the pipe takes them.
struct Busy {
  Busy() {
    pid = ::fork();
    if (pid == 0) {
      ::signal(SIGTERM, SIG_DFL);  // not Catch's
      const char byte = 0;
      while (::write(pipe.write.get(), &byte, 1) == 1) {
      }
      ::_exit(0);
    }
    wait_for_byte();
  }
  ~Busy() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  void wait_for_byte() const {
    char byte = 0;
    REQUIRE(::read(pipe.read.get(), &byte, 1) == 1);
  }
  [[nodiscard]] char state() const {
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat").value();
    return stat.at(stat.rfind(')') + 2);
  }

  Pipe pipe = make_pipe().value();
  int pid = -1;
};

}  // namespace

TEST_CASE("processes stand still for a while, and go on then") {
  Busy busy;
  std::optional<Standstill> standstill(std::in_place, std::vector{read_process(busy.pid).value()});
  CHECK(busy.state() == 'T');
  standstill.reset();
  for (int i = 0; i < 100'000; ++i) busy.wait_for_byte();  // more than a pipe holds: it writes again
}

TEST_CASE("a process that somebody else has stopped stays so") {
  Busy busy;
  ::kill(busy.pid, SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(busy.pid, &status, WUNTRACED) == busy.pid);
  { Standstill standstill({read_process(busy.pid).value()}); }
  CHECK(busy.state() == 'T');
}

TEST_CASE("a signal that is sent meanwhile is heeded then") {
  Busy busy;
  {
    Standstill standstill({read_process(busy.pid).value()});
    ::kill(busy.pid, SIGTERM);
    CHECK(busy.state() == 'T');
  }
  int status = 0;
  REQUIRE(::waitpid(busy.pid, &status, 0) == busy.pid);
  CHECK(WTERMSIG(status) == SIGTERM);
}

TEST_CASE("processes that are gone are no matter") {
  Process gone{.pid = 1 << 22, .started = 1};
  Standstill standstill({gone});
  SUCCEED("it returns");
}

}  // namespace standstill_test
