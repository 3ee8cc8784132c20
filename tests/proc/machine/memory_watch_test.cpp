#include "proc/machine/memory_watch.hpp"

#include <signal.h>

#include "proc/family/cgroup.hpp"
#include "proc/processes.hpp"

namespace memory_watch_test {

using namespace taas;
using namespace taas::test;

namespace {

bool write_file(const std::string& path, const std::string& text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && write_all(file, text).has_value();
}

/// A memory control group below the test's own, limited to 128 MiB; `usable` is false where none can be made.
struct LimitedGroup {
  LimitedGroup() {
    auto parent = find_cgroup("memory");
    if (!parent) return;
    directory = parent->directory + "/taas-test-" + random_hex(6);
    if (::mkdir(directory.c_str(), 0755) != 0) return;
    bool first = parent->version == Cgroup::Version::kOne;
    usable = write_file(directory + (first ? "/memory.limit_in_bytes" : "/memory.max"), "134217728");
  }
  ~LimitedGroup() { ::rmdir(directory.c_str()); }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;

  std::string directory;
  bool usable = false;
};

struct Outcome {
  int signal = 0;
  long before = -1;
  long after = -1;
};

/// Joins the group as a launcher would be in it, and starts a program that wants too much.
Outcome overflow(const LimitedGroup& group) {
  Outcome outcome;
  if (!write_file(group.directory + "/cgroup.procs", std::to_string(::getpid()))) return outcome;
  outcome.before = oom_kills().value_or(-1);
  auto child = spawn(shell("exec 2> /dev/null; head -c 500m /dev/zero | tail -c 400m > /dev/null; kill -KILL $$"));
  int status = 0;
  if (child && ::waitpid(child->pid, &status, 0) == child->pid && WIFSIGNALED(status))
    outcome.signal = WTERMSIG(status);
  outcome.after = oom_kills().value_or(-1);
  return outcome;
}

}  // namespace

TEST_CASE("a kill by the out-of-memory killer is counted in the launcher's memory group") {
  LimitedGroup group;
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto launcher = group.usable ? ::fork() : -1;
  if (launcher == 0) {
    auto outcome = overflow(group);
    ::_exit(::write(pipe->write.get(), &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
  }
  if (launcher < 0) SKIP_TEST("no memory control group can be made here");
  ::waitpid(launcher, nullptr, 0);
  Outcome outcome;
  REQUIRE(::read(pipe->read.get(), &outcome, sizeof outcome) == sizeof outcome);
  if (outcome.before < 0) SKIP_TEST("the memory control group cannot be joined or read");
  CHECK(outcome.signal == SIGKILL);
  CHECK(outcome.after > outcome.before);
}

TEST_CASE("a plain SIGKILL is not counted") {
  auto before = oom_kills();
  auto child = spawn(shell("kill -KILL $$"));
  REQUIRE(child.has_value());
  CHECK(wait_for_exit(std::move(*child)).signal == SIGKILL);
  CHECK(oom_kills() == before);
}

TEST_CASE("the memory that is available is that of the machine, or what its group leaves") {
  constexpr std::int64_t kLimit = 134217728;
  auto outside = available_memory();
  REQUIRE(outside.has_value());
  CHECK(*outside > 0);
  LimitedGroup group;
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto member = group.usable ? ::fork() : -1;
  if (member == 0) {
    bool joined = write_file(group.directory + "/cgroup.procs", std::to_string(::getpid()));
    std::int64_t left = joined ? available_memory().value_or(-1) : -1;
    ::_exit(::write(pipe->write.get(), &left, sizeof left) == sizeof left ? 0 : 1);
  }
  if (member < 0) SKIP_TEST("no memory control group can be made here");
  ::waitpid(member, nullptr, 0);
  std::int64_t left = -1;
  REQUIRE(::read(pipe->read.get(), &left, sizeof left) == sizeof left);
  if (left < 0) SKIP_TEST("the memory control group cannot be joined");
  CHECK(left <= kLimit);
}

}  // namespace memory_watch_test
