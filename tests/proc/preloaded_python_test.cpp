#include "proc/preloaded_python.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/files.hpp"
#include "proc/family.hpp"
#include "proc/python.hpp"
#include "processes.hpp"

using namespace taas;
using namespace taas::test;

namespace {

/// SIGCHLD of a sibling interrupts a wait.
int reap(int pid, int* status = nullptr) {
  int reaped = -1;
  do reaped = ::waitpid(pid, status, 0);
  while (reaped < 0 && errno == EINTR);
  return reaped;
}

/// An interpreter that runs a text as its program.
struct Fixture {
  explicit Fixture(const std::string& modules, std::vector<std::string> options = {"-u"}) {
    std::vector<std::string> environment{std::string("PATH=") + std::getenv("PATH")};
    request.command = {find_python(environment)};
    request.command.insert(request.command.end(), options.begin(), options.end());
    request.options = request.command.size();
    request.command.insert(request.command.end(),
                           {"-c", "import os, sys; print(sys.argv, os.environ['RANK'])", "word"});
    request.environment = environment;
    request.modules = {modules};
    request.per_rank = {"RANK"};
    request.hook_folder = TAAS_PRELOAD_HOOK;
    auto started = PreloadedPython::start(io, family, request, [this](const std::string& why) { refusal = why; });
    REQUIRE(started.has_value());
    python = std::move(*started);
    REQUIRE(run_until(io, [this] { return refusal.has_value(); }));
  }

  /// Each process, or why there is none.
  std::vector<Result<Child>> spawn(const std::vector<SpawnRequest>& requests) {
    std::vector<Result<Child>> children;
    auto spawned =
        python->spawn(requests, [&](std::size_t, Result<Child> child) { children.push_back(std::move(child)); });
    REQUIRE(spawned.has_value());
    return children;
  }

  /// Other tests want to see no children.
  ~Fixture() {
    python.reset();
    while (reap(-1) > 0) {
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
    auto children = fixture.spawn({wanted, wanted});
    REQUIRE(children.size() == 2);
    for (auto& child : children) {
      REQUIRE(child.has_value());
      CHECK(child->preloaded);
      int status = -1;
      REQUIRE(reap(child->pid, &status) == child->pid);
      CHECK(status == 0);
    }
  }
  pipe->write.reset();
  std::string line = "['-c', 'word'] 5\n";
  CHECK(read_all(pipe->read) == line + line + line + line);
}

TEST_CASE("a step that fails is told as spawn() tells it, and it stays usable") {
  if (!has_python()) return;
  Fixture fixture("decimal");
  auto wanted = fixture.rank();
  wanted.working_directory = "/no/such/folder";
  auto children = fixture.spawn({wanted, fixture.rank()});
  REQUIRE(children.size() == 1);
  CHECK(children.front().error().message == "cannot enter directory /no/such/folder: No such file or directory");
  CHECK(fixture.python->usable());
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
