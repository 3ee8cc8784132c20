#include "node/looks/rank_looker.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>

#include "base/text.hpp"
#include "catch.hpp"
#include "node/looks/native_looks.hpp"
#include "proc/inspect/thread_facts.hpp"
#include "proc/processes.hpp"

namespace rank_looker_test {

using namespace taas;
using namespace taas::node;
using namespace taas::test;
using run::Wait;

namespace {

/// A shell script that has said a line, and what is seen of it once it waits so.
struct Looked {
  explicit Looked(const std::string& script) {
    auto request = shell("echo; " + script);
    out = make_pipe().value();
    request.standard_output = &out.write;
    child = spawn(request).value();
    read_line(out.read);
  }
  ~Looked() {
    ::kill(-child.pid, SIGKILL);  // with what it has started
    wait_for_exit(std::move(child));
  }
  Looked(const Looked&) = delete;
  Looked& operator=(const Looked&) = delete;

  run::RankLook look(RankLooker::Detail detail = RankLooker::Detail::kWhatMatters) {
    auto looks = looker.look({{Rank{3}, child.pid}}, detail, false);
    REQUIRE(looks.size() == 1);
    return std::move(looks.front());
  }
  /// The script may still be on its way there.
  run::SeenThread until(Wait wait) {
    const auto deadline = steady_now() + std::chrono::seconds(20);
    for (;;) {
      auto thread = look().processes.front().threads.front();
      if (thread.wait == wait || steady_now() > deadline) return thread;
    }
  }

  RankLooker looker;
  Pipe out;
  Child child;
};

}  // namespace

TEST_CASE("what a process waits for is said in words") {
  TemporaryFolder folder;
  SECTION("a child") {
    Looked looked("sleep 1000; true");
    CHECK(contains(looked.until(Wait::kChild).waits_for, "to end"));
    const auto look = looked.look();
    CHECK(look.rank == Rank{3});
    REQUIRE(look.processes.size() == 2);
    CHECK(look.processes[0].pid == looked.child.pid);
    CHECK(contains(look.processes[1].command, "sleep 1000"));
    CHECK(look.cpu_ns > 0);
  }
  SECTION("a time") {
    Looked looked("exec sleep 1000");
    CHECK(looked.until(Wait::kTime).waits_for == "a time to pass");
  }
  SECTION("a FIFO that nobody opens") {
    const auto path = folder / "fifo";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    Looked looked("exec cat " + path);
    CHECK(looked.until(Wait::kPipe).waits_for == "somebody to open the other end of " + path);
  }
  SECTION("a FIFO that nothing comes from") {
    const auto path = folder / "fifo";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    Looked looked(fmt::format("exec 4<>{} && exec cat <&4", path));
    CHECK(looked.until(Wait::kInput).waits_for == "its standard input");
    Looked other(fmt::format("exec 4<>{0} && read line <&4", path));
    CHECK(other.until(Wait::kInput).waits_for == "its standard input");
  }
  SECTION("a signal has stopped it") {
    Looked looked("exec sleep 1000");
    looked.until(Wait::kTime);
    ::kill(looked.child.pid, SIGSTOP);
    CHECK(looked.until(Wait::kStopped).waits_for == "a signal, until SIGCONT");
  }
}

TEST_CASE("a rank that has ended is not there") {
  Looked looked("exec sleep 1000");
  const int pid = looked.child.pid;
  RankLooker looker;
  ::kill(pid, SIGKILL);
  CHECK(looker.look({{Rank{0}, 1 << 30}}, RankLooker::Detail::kWhatMatters, true).empty());
}

TEST_CASE("frames of the user's are told from those of libraries") {
  const auto is_own = [](const NativeFrame& frame) { return run::is_own_file(seen_frame(frame).file); };
  CHECK(is_own({"main", "/home/me/trainer.cpp", 7, "/home/me/trainer"}));
  CHECK(is_own({"Trainer::step", "", 0, "/home/me/trainer"}));
  CHECK(seen_frame({"Trainer::step", "", 0, "/home/me/trainer"}).file == "/home/me/trainer");
  CHECK_FALSE(is_own({"std::thread::join", "", 0, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}));
  CHECK_FALSE(is_own({"__gthread_mutex_lock", "/usr/include/c++/12/bits/gthr-default.h", 749, "/home/me/trainer"}));
  CHECK_FALSE(is_own({"taas::all_reduce", "/src/lib/training/group/collectives.cpp", 7, "/home/me/trainer"}));
  CHECK_FALSE(is_own({"c10d::Work::wait", "", 0, "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"}));
  CHECK_FALSE(is_own({"", "", 0, "[vdso]"}));
  CHECK(seen_frame({"std::thread::join", "", 0, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}).file == "<libstdc++.so.6>");
}

}  // namespace rank_looker_test
