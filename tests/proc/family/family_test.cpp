#include "proc/family/family.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <map>

#include "proc/processes.hpp"

namespace family_test {

using namespace taas;
using namespace taas::test;

namespace {

/// An event loop with a family, and a pipe that its members hold while they live.
struct Fixture {
  Fixture() {
    auto pipe = make_pipe();
    REQUIRE(pipe.has_value());
    alive = std::move(pipe->read);
    held = std::move(pipe->write);
  }
  Child start(const std::string& script) {
    auto request = shell(script);
    request.standard_output = &held;
    auto child = spawn(request);
    REQUIRE(child.has_value());
    return std::move(*child);
  }
  void sweep(int signal) {
    family.sweep(signal, [this] { gone = true; });
  }
  bool run_until_gone() {
    return run_until(io, [this] { return gone; });
  }
  /// True when no member is left: only those held the pipe.
  bool nobody_holds_the_pipe() {
    held.reset();
    return read_to_end(alive).empty();
  }

  boost::asio::io_context io;
  Family family{io};
  Fd alive, held;
  bool gone = false;
};

constexpr auto kOrphan = "setsid sh -c '(sh -c \"echo orphan; exec sleep 1000\" &)'";

}  // namespace

TEST_CASE("a sweep of nobody is over at once, but not within the call") {
  Fixture fixture;
  fixture.sweep(SIGTERM);
  CHECK_FALSE(fixture.gone);
  CHECK(fixture.run_until_gone());
}

TEST_CASE("a sweep reaches orphans in other sessions and tells watched ranks first") {
  Fixture fixture;
  std::vector<std::string> told;
  auto record = [&](ExitStatus status, Instant) { told.push_back("signal " + std::to_string(status.signal)); };
  fixture.family.watch(fixture.start(std::string(kOrphan) + "; exec sleep 1000"), record);
  fixture.family.watch(fixture.start(std::string(kOrphan) + "; exec sleep 1000"), record);
  REQUIRE(read_line(fixture.alive) == "orphan");
  REQUIRE(read_line(fixture.alive) == "orphan");
  CHECK(fixture.family.members().size() >= 4);
  fixture.family.sweep(SIGKILL, [&] {
    told.push_back("gone");
    fixture.gone = true;
  });
  REQUIRE(fixture.run_until_gone());
  CHECK(told == std::vector<std::string>{"signal 9", "signal 9", "gone"});
  CHECK(fixture.family.members().empty());
  CHECK(fixture.nobody_holds_the_pipe());
}

TEST_CASE("a later sweep takes the place of one that is not heeded") {
  Fixture fixture;
  fixture.family.watch(fixture.start("trap '' TERM; echo ready; while :; do sleep 1000; done"),
                       [](ExitStatus, Instant) {});
  REQUIRE(read_line(fixture.alive) == "ready");
  bool heeded = false;
  fixture.family.sweep(SIGTERM, [&] { heeded = true; });
  for (int turn = 0; turn < 5; ++turn) fixture.io.run_one();
  CHECK_FALSE(heeded);
  CHECK_FALSE(fixture.family.members().empty());
  fixture.sweep(SIGKILL);
  REQUIRE(fixture.run_until_gone());
  CHECK_FALSE(heeded);
  CHECK(fixture.nobody_holds_the_pipe());
}

TEST_CASE("SIGTERM lets leftovers end in their own way") {
  Fixture fixture;
  bool exited = false;
  fixture.family.watch(
      fixture.start("(setsid sh -c 'trap \"echo bye; exit\" TERM; echo ready; while :; do sleep 0.01; done' &)"),
      [&](ExitStatus status, Instant) { exited = status.success(); });
  REQUIRE(read_line(fixture.alive) == "ready");
  REQUIRE(run_until(fixture.io, [&] { return exited; }));
  CHECK_FALSE(fixture.gone);
  fixture.sweep(SIGTERM);
  REQUIRE(fixture.run_until_gone());
  fixture.held.reset();
  CHECK(read_to_end(fixture.alive) == "bye\n");
}

TEST_CASE("what was told to end through its group is not told again by the sweep") {
  Fixture fixture;
  TemporaryFolder folder;
  bool exited = false;
  auto child = fixture.start("sh -c 'trap \"echo told\" TERM; echo ready; while ! [ -e " + (folder / "go") +
                             " ]; do sleep 0.01; done; echo saved' & wait");
  int pid = child.pid;
  fixture.family.watch(std::move(child), [&](ExitStatus, Instant) { exited = true; });
  REQUIRE(read_line(fixture.alive) == "ready");
  fixture.family.tell({pid}, SIGTERM, Audience::kAll);
  REQUIRE(run_until(fixture.io, [&] { return exited; }));
  REQUIRE(read_line(fixture.alive) == "told");
  fixture.sweep(SIGTERM);
  for (int turn = 0; turn < 5; ++turn) fixture.io.run_one();
  CHECK_FALSE(fixture.gone);
  Fd(::open((folder / "go").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(fixture.run_until_gone());
  fixture.held.reset();
  CHECK(read_to_end(fixture.alive) == "saved\n");
}

TEST_CASE("a stopped process hears that it is to end") {
  Fixture fixture;
  ExitStatus ended;
  bool told = false;
  auto child = fixture.start("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done");
  int pid = child.pid;
  fixture.family.watch(std::move(child), [&](ExitStatus status, Instant) {
    ended = status;
    told = true;
  });
  REQUIRE(read_line(fixture.alive) == "ready");
  ::kill(pid, SIGSTOP);
  REQUIRE(::waitpid(pid, nullptr, WUNTRACED) == pid);
  fixture.family.tell({pid}, SIGTERM, Audience::kAll);
  REQUIRE(run_until(fixture.io, [&] { return told; }));
  CHECK(ended.code == 5);
}

TEST_CASE("what asks for something goes to those who handle it, and who does not is known") {
  Fixture fixture;
  std::vector<int> pids;
  std::map<int, ExitStatus> ended;
  for (const auto* script :
       {"trap 'exit 5' USR1; echo ready; while :; do sleep 0.01; done", "echo ready; exec sleep 1000"}) {
    auto child = fixture.start(script);
    pids.push_back(child.pid);
    fixture.family.watch(std::move(child), [&, pid = child.pid](ExitStatus status, Instant) { ended[pid] = status; });
    REQUIRE(read_line(fixture.alive) == "ready");
  }
  CHECK(fixture.family.tell(pids, SIGUSR1, Audience::kHandlers) == std::vector<int>{pids[1]});
  REQUIRE(run_until(fixture.io, [&] { return ended.contains(pids[0]); }));
  CHECK(ended[pids[0]].code == 5);
  CHECK_FALSE(ended.contains(pids[1]));
  fixture.sweep(SIGKILL);
  REQUIRE(fixture.run_until_gone());
}

TEST_CASE("a sweep without a signal waits for what does not end at once") {
  Fixture fixture;
  bool exited = false;
  auto door = make_pipe();
  REQUIRE(door.has_value());
  auto request = shell("setsid sh -c 'read go <&3; echo uploaded' & exit 0");
  request.standard_output = &fixture.held;
  request.inherited = {&door->read};
  auto child = spawn(request);
  REQUIRE(child.has_value());
  fixture.family.watch(std::move(*child), [&](ExitStatus, Instant) { exited = true; });
  REQUIRE(run_until(fixture.io, [&] { return exited; }));
  fixture.sweep(0);
  for (int turn = 0; turn < 3; ++turn) fixture.io.poll_one();
  CHECK_FALSE(fixture.gone);
  CHECK(fixture.family.members().size() == 1);
  door->write.reset();
  REQUIRE(fixture.run_until_gone());
  fixture.held.reset();
  CHECK(read_to_end(fixture.alive) == "uploaded\n");
}

TEST_CASE("a chain of processes, each of which starts the next one and ends, is ended") {
  Fixture fixture;
  bool exited = false;
  fixture.family.watch(
      fixture.start("link() { sleep 0.005; link & exit 0; }; trap '' TERM; (setsid true; link) & echo begun; exit 0"),
      [&](ExitStatus, Instant) { exited = true; });
  REQUIRE(read_line(fixture.alive) == "begun");
  REQUIRE(run_until(fixture.io, [&] { return exited; }));
  fixture.sweep(SIGKILL);
  REQUIRE(fixture.run_until_gone());
  CHECK(fixture.nobody_holds_the_pipe());
}

TEST_CASE("orphans are reaped without a sweep, statuses of watched ranks are not taken") {
  Fixture fixture;
  std::vector<int> codes;
  for (int i = 1; i <= 20; ++i) {
    fixture.family.watch(fixture.start("(setsid true &) ; (true &) ; exit " + std::to_string(i)),
                         [&](ExitStatus status, Instant) { codes.push_back(status.code); });
  }
  REQUIRE(run_until(fixture.io, [&] { return codes.size() == 20; }));
  std::sort(codes.begin(), codes.end());
  for (int i = 1; i <= 20; ++i) CHECK(codes[static_cast<std::size_t>(i - 1)] == i);
  REQUIRE(run_until(fixture.io, [] { return has_no_children(); }));
}

TEST_CASE("spared processes live through a sweep") {
  Fixture fixture;
  auto spared = fixture.start("echo spared; exec sleep 1000");
  REQUIRE(read_line(fixture.alive) == "spared");
  int pid = spared.pid;
  fixture.family.watch(std::move(spared), [](ExitStatus, Instant) {});
  fixture.family.spare(pid);
  bool told = false;
  fixture.family.watch(fixture.start("exec sleep 1000"), [&](ExitStatus, Instant) { told = true; });
  fixture.sweep(SIGKILL);
  REQUIRE(run_until(fixture.io, [&] { return told; }));
  REQUIRE(fixture.run_until_gone());
  CHECK(::kill(pid, 0) == 0);
  fixture.family.unspare(pid);
  fixture.gone = false;
  fixture.sweep(SIGKILL);
  REQUIRE(fixture.run_until_gone());
  CHECK(fixture.nobody_holds_the_pipe());
}

TEST_CASE("a group is signalled through the family while its leader lives") {
  Fixture fixture;
  ExitStatus ended;
  bool told = false;
  auto child = fixture.start("exec sleep 1000");
  int pid = child.pid;
  fixture.family.watch(std::move(child), [&](ExitStatus status, Instant) {
    ended = status;
    told = true;
  });
  fixture.family.signal_group(pid, SIGTERM);
  REQUIRE(run_until(fixture.io, [&] { return told; }));
  CHECK(ended.signal == SIGTERM);
  fixture.family.signal_group(pid, SIGTERM);  // nobody's
}

}  // namespace family_test
