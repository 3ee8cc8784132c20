#include "node/process/rank_process.hpp"

#include <stdlib.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/disk_thread.hpp"
#include "catch.hpp"
#include "held_path.hpp"
#include "proc/family/family.hpp"

namespace rank_process_test {

using namespace taas;
using node::RankCallbacks;
using node::RankProcess;
using node::RankStart;

namespace {

/// One rank that runs a shell command, and everything it told.
struct Fixture {
  boost::asio::io_context io;
  DiskThread disk{io};
  Family family{io};
  std::filesystem::path folder;
  std::vector<std::string> lines;
  std::optional<run::ExitStatus> status;
  run::Evidence evidence;
  std::unique_ptr<RankProcess> rank;

  Fixture() {
    std::string pattern = std::filesystem::temp_directory_path() / "taas-rank-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~Fixture() { std::filesystem::remove_all(folder); }

  void run(const std::string& command) {
    RankStart start;
    start.rank = Rank{3};
    start.argv = {"/bin/sh", "-c", command};
    start.environment = {"PATH=/usr/bin:/bin", "HERE=" + folder.string()};
    start.stdout_file = held_path(folder / "out");
    start.stderr_file = held_path(folder / "err");
    start.error_file = held_path(folder / "error.json");
    start.flight_record = held_path(folder / "record");
    RankCallbacks callbacks;
    callbacks.on_line = [this](const ui::OutputLine& line) { lines.push_back(line.text); };
    callbacks.on_exit = [this](run::ExitStatus ended, run::Evidence why, Instant) {
      status = ended;
      evidence = std::move(why);
    };
    auto started = RankProcess::start(io, family, disk, std::move(start), std::move(callbacks));
    REQUIRE(started.has_value());
    rank = std::move(*started);
  }

  void wait() {
    while (!status) io.run_one();
  }

  std::string file(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder / name).rdbuf();
    return text.str();
  }
};

}  // namespace

TEST_CASE("a rank's lines and bytes are complete when its end is told") {
  Fixture fixture;
  fixture.run("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; printf 'no end'");
  fixture.wait();
  REQUIRE(fixture.status->success());
  REQUIRE(fixture.lines.size() == 2001);
  CHECK(fixture.lines[1999] == "line 1999");
  CHECK(fixture.lines.back() == "no end");
  CHECK(fixture.file("out").size() > 2000 * 6);
  CHECK(fixture.evidence.last_lines.empty());
}

TEST_CASE("the evidence of a failure is its stderr and the program's own error file") {
  Fixture fixture;
  fixture.run(
      "echo shown; echo 'Traceback (most recent call last):' >&2; echo bad >&2; echo '{}' > $HERE/error.json; exit 4");
  fixture.wait();
  CHECK(fixture.status->code == 4);
  REQUIRE(fixture.evidence.last_lines.size() == 2);
  CHECK(fixture.evidence.last_lines[1] == "bad");
  CHECK(fixture.evidence.first_error_at != Instant{});
  CHECK(fixture.evidence.error_file == "{}\n");
  CHECK(fixture.evidence.stderr_path == (fixture.folder / "err").string());
}

TEST_CASE("an error file is read as far as errors are long, and only if it is a file") {
  const auto [make, size] = GENERATE(std::pair("head -c 3000000 /dev/zero | tr '\\0' x > $HERE/error.json", 256 * 1024),
                                     std::pair("mkfifo $HERE/error.json", 0), std::pair("mkdir $HERE/error.json", 0),
                                     std::pair("ln -s /dev/zero $HERE/error.json", 0),
                                     std::pair("echo '{}' > $HERE/other; ln -s other $HERE/error.json", 0));
  Fixture fixture;
  fixture.run(std::string(make) + "; echo bad >&2; exit 4");
  fixture.wait();
  CHECK(fixture.status->code == 4);
  CHECK(fixture.evidence.error_file.size() == static_cast<std::size_t>(size));
  CHECK(fixture.evidence.last_lines.back() == "bad");
}

TEST_CASE("a hang's record is read where it is a file of the rank's own") {
  const auto [make, groups] =
      GENERATE(std::pair("cp \"$RECORD\" $HERE/record", 1), std::pair("ln -s \"$RECORD\" $HERE/record", 0),
               std::pair("mkfifo $HERE/record", 0));
  Fixture fixture;
  fixture.run("RECORD='" TAAS_FLIGHT_RECORDS "/missing-2.15.0-0'; " + std::string(make) + "; exit 4");
  fixture.wait();
  CHECK(fixture.status->code == 4);
  CHECK(fixture.evidence.collectives.size() == static_cast<std::size_t>(groups));
}

TEST_CASE("a rank that was silent on stderr is judged by its stdout") {
  Fixture fixture;
  fixture.run("echo 'disk is gone'; exit 1");
  fixture.wait();
  REQUIRE(fixture.evidence.last_lines.size() == 1);
  CHECK(fixture.evidence.last_lines[0] == "disk is gone");
  CHECK(fixture.evidence.stderr_path == (fixture.folder / "out").string());
}

TEST_CASE("a prompt is shown although its line has no end") {
  Fixture fixture;
  fixture.run("printf 'password: '; exec sleep 100");
  while (fixture.lines.empty()) fixture.io.run_one();
  CHECK(fixture.lines[0] == "password: ");
  fixture.rank->signal(SIGKILL);
  fixture.wait();
}

TEST_CASE("a program that cannot be executed is an error with exec's errno") {
  boost::asio::io_context io;
  DiskThread disk(io);
  Family family(io);
  RankStart start;
  start.argv = {"/no/such/program"};
  auto started = RankProcess::start(io, family, disk, std::move(start), {});
  REQUIRE(started.has_error());
  CHECK(started.error().system_errno == ENOENT);
  CHECK_THAT(started.error().message, ContainsSubstring("/no/such/program"));
}

}  // namespace rank_process_test
