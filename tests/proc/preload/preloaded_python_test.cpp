#include "proc/preload/preloaded_python.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdlib>

#include "base/files.hpp"
#include "proc/family/descendants.hpp"
#include "proc/family/family.hpp"
#include "proc/processes.hpp"
#include "proc/spawn/python.hpp"

namespace preloaded_python_test {

using namespace taas;
using namespace taas::test;

namespace {

/// An interpreter that runs a text as its program.
struct Fixture {
  explicit Fixture(const std::string& modules, std::vector<std::string> options = {"-u"}) {
    std::vector<std::string> environment{std::string("PATH=") + std::getenv("PATH")};
    request.command = {find_python(environment)};
    request.command.insert(request.command.end(), options.begin(), options.end());
    request.options = request.command.size();
    request.command.insert(
        request.command.end(),
        {"-c", "import os, sys; os.write(1, f'{sys.argv} {os.environ[\"RANK\"]}\\n'.encode())", "word"});
    request.environment = environment;
    request.modules = {modules};
    request.per_rank = {"RANK"};
    request.hook_folder = TAAS_PRELOAD_HOOK;
    auto started = PreloadedPython::start(io, family, request, [this](const std::string& why) { refusal = why; });
    REQUIRE(started.has_value());
    python = std::move(*started);
    REQUIRE(run_until(io, [this] { return refusal.has_value(); }));
  }

  /// What a process that was started is watched with; one that was not has an error.
  struct Started {
    std::vector<bool> preloaded;
    std::vector<std::string> errors;
    std::vector<ExitStatus> ends;
  };

  /// Once all have ended.
  Started spawn(const std::vector<SpawnRequest>& requests) {
    Started started;
    std::optional<Result<>> end;
    auto take = [&](std::size_t, Result<Child> child) {
      if (!child) return started.errors.push_back(child.error().message);
      started.preloaded.push_back(child->preloaded);
      family.watch(std::move(*child), [&](ExitStatus status, Instant) { started.ends.push_back(status); });
    };
    python->spawn(requests, take, [&](Result<> how) { end = std::move(how); });
    REQUIRE(run_until(io, [&] { return end && started.ends.size() == started.preloaded.size(); }));
    CHECK(end->has_value());
    return started;
  }

  /// Other tests want to see no children.
  ~Fixture() {
    python.reset();
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
  }

  SpawnRequest rank() {
    SpawnRequest wanted;
    wanted.argv = request.command;
    wanted.environment = request.environment;
    wanted.environment.emplace_back("RANK=5");
    return wanted;
  }

  boost::asio::io_context io;
  Family family{io};
  PreloadRequest request;
  std::optional<std::string> refusal;
  std::unique_ptr<PreloadedPython> python;
};

bool has_python() { return !find_python(std::vector{std::string("PATH=") + std::getenv("PATH")}).empty(); }

TEST_CASE("ranks come out of it as children of this process") {
  if (!has_python()) return;
  Fixture fixture("decimal");
  CHECK(fixture.refusal->empty());
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  auto wanted = fixture.rank();
  wanted.standard_output = &pipe->write;
  for (int generation = 0; generation < 2; ++generation) {
    auto started = fixture.spawn({wanted, wanted});
    CHECK(started.preloaded == std::vector{true, true});
    REQUIRE(started.ends.size() == 2);
    CHECK((started.ends[0].success() && started.ends[1].success()));
  }
  pipe->write.reset();
  std::string line = "['-c', 'word'] 5\n";
  CHECK(read_to_end(pipe->read) == line + line + line + line);
}

TEST_CASE("a step that fails is told as spawn() tells it, and it stays usable") {
  if (!has_python()) return;
  Fixture fixture("decimal");
  auto wanted = fixture.rank();
  wanted.working_directory = "/no/such/folder";
  auto started = fixture.spawn({wanted, fixture.rank()});
  CHECK(started.preloaded.empty());
  CHECK(started.errors ==
        std::vector<std::string>{"cannot enter directory /no/such/folder: No such file or directory"});
  CHECK(fixture.python->usable());
}

TEST_CASE("an order can be taken back at any step, and leaves no process") {
  if (!has_python()) return;
  Fixture fixture("decimal");
  std::size_t handed_over = 0;
  auto order = [&] {
    fixture.python->spawn(
        {fixture.rank(), fixture.rank()}, [&](std::size_t, const Result<Child>&) { ++handed_over; },
        [](const Result<>&) { FAIL("its end is not told"); });
  };
  SECTION("when one of two was handed over: the interpreter stays") {
    order();
    REQUIRE(run_until(fixture.io, [&] { return handed_over == 1; }));
    fixture.python->cancel();
    CHECK(fixture.python->usable());
    CHECK(fixture.spawn({fixture.rank()}).ends.size() == 1);
    CHECK(handed_over == 1);
  }
  SECTION("when it was just given: the interpreter goes too") {
    order();
    fixture.python->cancel();
    CHECK_FALSE(fixture.python->usable());
    CHECK(handed_over == 0);
  }
  fixture.python.reset();
  CHECK(run_until(fixture.io, [] { return has_no_children(); }));
}

TEST_CASE("an interpreter that does not answer holds nobody up, one that ends is told") {
  if (!has_python()) return;
  Fixture fixture("decimal");
  const auto members = descendants();
  REQUIRE(members.size() == 2);  // the interpreter, and the process that forks for it
  for (const auto& member : members) REQUIRE(::kill(member.pid, SIGSTOP) == 0);
  std::optional<Result<>> end;
  fixture.python->spawn(
      {fixture.rank()}, [](std::size_t, const Result<Child>&) { FAIL("nothing is handed over"); },
      [&](Result<> how) { end = std::move(how); });
  bool went_on = false;
  boost::asio::post(fixture.io, [&] { went_on = true; });
  CHECK(run_until(fixture.io, [&] { return went_on; }));
  CHECK_FALSE(end.has_value());
  for (const auto& member : members) ::kill(member.pid, SIGKILL);
  REQUIRE(run_until(fixture.io, [&] { return end.has_value(); }));
  CHECK_FALSE(end->has_value());
  CHECK_FALSE(fixture.python->usable());
}

TEST_CASE("a refusal is told once, and no rank can be had then") {
  if (!has_python()) return;
  Fixture fixture("no_such_module");
  CHECK(*fixture.refusal == "there is no module no_such_module");
  CHECK_FALSE(fixture.python->usable());
}

TEST_CASE("an interpreter that passes the hook by runs nothing") {
  if (!has_python()) return;
  Fixture fixture("decimal", {"-I"});
  CHECK(*fixture.refusal == "this interpreter does not import sitecustomize from PYTHONPATH");
}

}  // namespace

}  // namespace preloaded_python_test
