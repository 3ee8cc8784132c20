#include "storage/run_directory.hpp"

#include <unistd.h>

#include <cerrno>

#include "catch.hpp"
#include "small_disk.hpp"
#include "temporary_folder.hpp"

namespace run_directory_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

RunDirectory made(const RunDirectoryOptions& options) {
  auto run = create_run_directory(options);
  if (!run) FAIL(run.error().message);
  return *run;
}

Error refused(const RunDirectoryOptions& options) {
  auto run = create_run_directory(options);
  REQUIRE_FALSE(run.has_value());
  return run.error();
}

}  // namespace

TEST_CASE("the run's folder is made, parents included, and latest points to it") {
  TemporaryFolder folder;
  auto run = made({.output = folder / "a/b", .run_id = "job"});
  CHECK(run.path() == folder / "a/b/job");
  CHECK(fs::is_directory(run.staging()));
  CHECK(fs::is_directory(run.files()));
  CHECK(fs::read_symlink(folder / "a/b/latest") == "job");
  auto second = made({.output = folder / "a/b", .run_id = "other"});
  CHECK(fs::canonical(folder / "a/b/latest") == second.path());
}

TEST_CASE("paths are absolute, since ranks may change their folder") {
  TemporaryFolder folder;
  auto before = fs::current_path();
  fs::current_path(folder.path());
  auto run = made({.output = "./runs/", .run_id = "job"});
  fs::current_path(before);
  CHECK(run.path() == folder / "runs/job");
}

TEST_CASE("a node that can only read the run's folder refuses") {
  SmallDisk disk("size=2m");
  if (!disk.mounted()) SKIP_TEST("mounting needs root");
  auto run = made({.output = disk.path(), .run_id = "job"});
  REQUIRE(open_run_directory(run.path(), "").has_value());
  REQUIRE(disk.make_read_only());
  auto opened = open_run_directory(run.path(), "");
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message.starts_with("cannot write to " + run.path()));
  CHECK(opened.error().system_errno == EROFS);
}

TEST_CASE("where nobody may write, the run is in the other place, and that is told") {
  TemporaryFolder folder;
  auto elsewhere = [&] { return folder / "else"; };
  auto run = made({.output = "/proc/taas", .run_id = "job", .otherwise = elsewhere});
  CHECK(run.path() == folder / "else/job");
  CHECK_THAT(run.notice(), ContainsSubstring("/proc/taas") && ContainsSubstring(run.path()));
  CHECK(made({.output = folder / "here", .run_id = "job", .otherwise = elsewhere}).notice().empty());
  write_text(folder / "file", "");
  CHECK(refused({.output = folder / "file", .run_id = "job", .otherwise = elsewhere}).system_errno == ENOTDIR);
  CHECK_THAT(refused({.output = "/proc/taas", .run_id = "job", .otherwise = [] { return "/proc/else"; }}).message,
             ContainsSubstring("/proc/taas"));
}

TEST_CASE("a run never shares a folder") {
  TemporaryFolder folder;
  made({.output = folder.path(), .run_id = "job"});
  CHECK(made({.output = folder.path(), .run_id = "job"}).path() == folder / "job-2");
  CHECK(made({.output = folder.path(), .run_id = "job"}).path() == folder / "job-3");
}

TEST_CASE("a run id cannot leave the output folder") {
  TemporaryFolder folder;
  CHECK(made({.output = folder.path(), .run_id = "../x"}).path() == folder / "_.._x");
  CHECK(made({.output = folder.path(), .run_id = ""}).path() == folder / "_");
  CHECK(made({.output = folder.path(), .run_id = "latest"}).path() == folder / "latest-1");
  CHECK(fs::read_symlink(folder / "latest") == "latest-1");
}

TEST_CASE("a run within another one leaves the link to it") {
  TemporaryFolder folder;
  made({.output = folder.path(), .run_id = "outer"});
  made({.output = folder.path(), .run_id = "inner", .is_latest = false});
  CHECK(fs::read_symlink(folder / "latest") == "outer");
}

TEST_CASE("log files are made for by generation and rank") {
  TemporaryFolder folder;
  auto run = made({.output = folder.path(), .run_id = "job"});
  CHECK_FALSE(fs::exists(folder / "job/generation-0"));
  CHECK(run.rank_log(Generation{0}, {Rank{3}}, LogStream::kStdout).value().path() ==
        folder / "job/generation-0/rank-0003.out");
  CHECK(run.rank_log(Generation{1}, {Rank{12345}}, LogStream::kStderr).value().path() ==
        folder / "job/generation-1/rank-12345.err");
  CHECK(run.error_file(Generation{1}, {Rank{3}}).value().path() == folder / "job/generation-1/rank-0003.error.json");
  CHECK(fs::is_directory(folder / "job/generation-1"));
}

TEST_CASE("--log-dir has torchrun's layout, without collisions between simulated nodes") {
  TemporaryFolder folder;
  RunDirectoryOptions options{.output = folder / "runs", .run_id = "job7", .log_dir = folder / "logs"};
  auto run = made(options);
  auto log = [&](RankPlace place) { return run.rank_log(Generation{0}, place, LogStream::kStdout).value().path(); };
  RankPlace second{.rank = Rank{1}, .local_rank = 1};
  CHECK(log({Rank{0}}) == folder / "logs/job7/attempt_0/0/stdout.log");
  CHECK(log(second) == folder / "logs/job7/attempt_0/1/stdout.log");
  CHECK(log({.rank = Rank{2}, .node = NodeIndex{1}}) == folder / "logs/job7/node_1/attempt_0/0/stdout.log");
  CHECK(run.rank_log(Generation{2}, second, LogStream::kStderr).value().path() ==
        folder / "logs/job7/attempt_2/1/stderr.log");
  CHECK(run.error_file(Generation{0}, second).value().path() == folder / "logs/job7/attempt_0/1/error.json");
  CHECK(fs::is_directory(folder / "logs/job7/node_1/attempt_0/0"));
}

TEST_CASE("flight records have a place in the run's folder, also with --log-dir") {
  TemporaryFolder folder;
  auto run = made({.output = folder / "runs", .run_id = "job7", .log_dir = folder / "logs"});
  CHECK(run.flight_records(Generation{1}).value().path() == folder / "runs/job7/generation-1/flight-record-");
  CHECK(fs::is_directory(folder / "runs/job7/generation-1"));
}

TEST_CASE("another node opens the same folder, there already or not") {
  TemporaryFolder folder;
  auto run = made({.output = folder / "runs", .run_id = "job", .log_dir = folder / "logs"});
  CHECK(open_run_directory(run.path(), run.log_dir()).value().files() == run.files());
  auto elsewhere = open_run_directory(folder / "node/runs/job", "");
  REQUIRE(elsewhere.has_value());
  CHECK(fs::is_directory(elsewhere->staging()));
  CHECK_FALSE(fs::exists(folder / "node/runs/latest"));
  auto refused = open_run_directory("/proc/taas/job", "");
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, ContainsSubstring("/proc/taas/job") && ContainsSubstring("--output DIR"));
}

TEST_CASE("a file in the place of the output folder is named") {
  TemporaryFolder folder;
  write_text(folder / "file", "");
  for (const auto* output : {"file", "file/x", "missing/../file/x"}) {
    auto error = refused({.output = folder / output, .run_id = "job"});
    CHECK(error.system_errno == ENOTDIR);
    CHECK_THAT(error.message, ContainsSubstring(folder / "file") && ContainsSubstring("--output DIR"));
  }
  auto error = refused({.output = folder / "runs", .run_id = "job", .log_dir = folder / "file"});
  CHECK_THAT(error.message, ContainsSubstring("--log-dir DIR"));
}

TEST_CASE("a place where no folder can be made is named") {
  auto error = refused({.output = "/proc/taas", .run_id = "job"});
  CHECK_THAT(error.message, ContainsSubstring("/proc/taas") && ContainsSubstring("--output DIR"));
}

TEST_CASE("a full disk is named before training") {
  SmallDisk disk("size=512k");
  if (!disk.mounted()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  auto error = refused({.output = disk.path(), .run_id = "job"});
  CHECK(error.system_errno == ENOSPC);
  CHECK_THAT(error.message, ContainsSubstring(disk.path()));
}

TEST_CASE("a read-only disk is named before training") {
  SmallDisk disk("size=4m");
  if (!disk.mounted() || !disk.make_read_only()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  auto error = refused({.output = disk.path(), .run_id = "job"});
  CHECK(error.system_errno == EROFS);
  CHECK_THAT(error.message, ContainsSubstring(disk.path()));
}

TEST_CASE("folders of a generation are made nowhere but in the run's folder") {
  TemporaryFolder folder;
  auto run = made({.output = folder / "runs", .run_id = "job", .log_dir = folder / "logs"});
  auto plain = made({.output = folder / "runs", .run_id = "other"});
  fs::create_directory(folder / "victim");
  for (const auto* name : {"runs/job/generation-0", "runs/other/generation-0", "logs/job/attempt_0"}) {
    fs::create_directory_symlink(folder / "victim", folder / name);
  }
  const auto told = ContainsSubstring("is a symbolic link to " + (folder / "victim"));
  CHECK_THAT(run.rank_log(Generation{0}, {Rank{0}}, LogStream::kStdout).error().message, told);
  CHECK_THAT(run.error_file(Generation{0}, {Rank{0}}).error().message, told);
  CHECK_THAT(run.flight_records(Generation{0}).error().message, told);
  CHECK_THAT(plain.rank_log(Generation{0}, {Rank{0}}, LogStream::kStdout).error().message, told);
  CHECK(fs::is_empty(folder / "victim"));
}

TEST_CASE("a link in the place of the run's folder is not another node's folder") {
  TemporaryFolder folder;
  fs::create_directories(folder / "victim");
  fs::create_directories(folder / "runs");
  fs::create_directory_symlink(folder / "victim", folder / "runs/job");
  CHECK_THAT(open_run_directory(folder / "runs/job", "").error().message,
             ContainsSubstring("it is a symbolic link; choose another folder with --output DIR"));
  CHECK(fs::is_empty(folder / "victim"));
  fs::create_directory_symlink(folder / "runs", folder / "mine");  // of the user
  CHECK(open_run_directory(folder / "mine/job2", "").has_value());
}

}  // namespace run_directory_test
