#include "storage/publishing/writers.hpp"

#include <fcntl.h>

#include "base/fd.hpp"
#include "catch.hpp"
#include "storage/child_process.hpp"
#include "storage/temporary_folder.hpp"

namespace writers_test {

using namespace taas;
using namespace taas::storage;
using namespace std::chrono_literals;

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

TEST_CASE("of all writers the worst counts") {
  const Instant now{};
  WritingProcesses writers;
  CHECK(writers.look(now) == WritersState::kWell);
  writers.add(::getpid());
  CHECK(writers.look(now) == WritersState::kWell);
  writers.ended(1, WriterEnd::kWell);
  CHECK(writers.look(now) == WritersState::kWell);
  writers.ended(2, WriterEnd::kBadly);
  CHECK(writers.look(now) == WritersState::kBadly);
  writers.ended(3, WriterEnd::kKilled);
  writers.ended(4, WriterEnd::kWell);
  CHECK(writers.look(now) == WritersState::kKilled);
  writers.clear();
  CHECK(writers.look(now) == WritersState::kWell);
}

TEST_CASE("one that has died is uncertain until its end is known") {
  WritingProcesses writers;
  ChildProcess child([] {});
  writers.add(child.pid());
  CHECK(writers.look({}) == WritersState::kWell);
  child.kill();
  child.wait_dead();
  CHECK(writers.look({}) == WritersState::kUncertain);
  writers.ended(child.pid(), WriterEnd::kKilled);
  CHECK(writers.look({}) == WritersState::kKilled);
}

TEST_CASE("a traceback counts for a while: whoever lives on has caught it") {
  WritingProcesses writers;
  writers.add(::getpid());
  writers.raised(Instant{});
  CHECK(writers.look(Instant{} + 1s) == WritersState::kRaised);
  CHECK(writers.look(Instant{} + 31s) == WritersState::kWell);
}

TEST_CASE("names that a process writes are known, those that it reads are not") {
  TemporaryFolder folder;
  write_text(folder / "read", "text");
  Fd reads(::open((folder / "read").c_str(), O_RDONLY));
  Fd writes(::open((folder / "written").c_str(), O_RDWR | O_CREAT, 0644));
  Fd again(::open((folder / "written").c_str(), O_WRONLY));
  Fd removed(::open((folder / "removed").c_str(), O_WRONLY | O_CREAT, 0644));
  std::filesystem::remove(folder / "removed");
  std::filesystem::create_directory_symlink(".", folder / "link");
  const auto held = HeldFolder::open(folder / "link/.").value();
  const auto found = names_being_written({::getpid()}, held);
  CHECK(found == std::map<std::string, int>{{"written", 2}});
}

}  // namespace writers_test
