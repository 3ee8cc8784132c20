#include "storage/publishing/file_state.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "catch.hpp"
#include "storage/refused_calls.hpp"
#include "storage/temporary_folder.hpp"

namespace file_state_test {

using namespace taas;
using namespace taas::storage;

namespace {

/// The file of this path, in a folder that is held.
Result<StagedFile> open_staged(const std::string& path) {
  const std::filesystem::path parts(path);
  return StagedFile::open(HeldFolder::open(parts.parent_path().string()).value(), parts.filename().string());
}

Result<FileState> state_of_link(const std::string& path) {
  const std::filesystem::path parts(path);
  return link_state(HeldFolder::open(parts.parent_path().string()).value(), parts.filename().string());
}

/// Nobody else has the file open: whatever is not a lease is a refusal.
bool has_leases(const std::string& path) {
  write_text(path, "x");
  return open_staged(path).value().writers() == StagedFile::Writers::kNone;
}

}  // namespace

TEST_CASE("the state changes with every new content") {
  TemporaryFolder folder;
  auto path = folder / "file";
  write_text(path, "one");
  auto before = open_staged(path).value().state();
  CHECK(open_staged(path).value().state() == before);
  write_text(path, "three");
  CHECK(open_staged(path).value().state() != before);
}

TEST_CASE("a file system that refuses leases is not taken for one that has them") {
  TemporaryFolder folder;
  without_leases([&] { CHECK_FALSE(has_leases(folder / "file")); });
}

TEST_CASE("an open writer is seen") {
  TemporaryFolder folder;
  auto path = folder / "file";
  if (!has_leases(path)) SKIP_TEST("this file system has no leases");
  CHECK(open_staged(path).value().writers() == StagedFile::Writers::kNone);
  Fd writer(::open(path.c_str(), O_WRONLY));
  CHECK(open_staged(path).value().writers() == StagedFile::Writers::kOpen);
  writer.reset();
  CHECK(open_staged(path).value().writers() == StagedFile::Writers::kNone);
}

TEST_CASE("a writer that comes is noticed and let pass on release") {
  TemporaryFolder folder;
  auto path = folder / "file";
  if (!has_leases(path)) SKIP_TEST("this file system has no leases");
  auto file = open_staged(path).value();
  CHECK(file.still_unwritten());
  CHECK_FALSE(Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK)));
  CHECK_FALSE(file.still_unwritten());
  file.release();
  CHECK(Fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK)));
}

TEST_CASE("only regular files are opened") {
  TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  std::filesystem::create_symlink("nowhere", folder / "link");
  CHECK(open_staged(folder / "fifo").error().system_errno == EINVAL);
  CHECK(open_staged(folder / "link").error().system_errno == EINVAL);
  CHECK(open_staged(folder / "missing").error().system_errno == ENOENT);
  CHECK(state_of_link(folder / "link").has_value());
  CHECK(state_of_link(folder / "fifo").error().system_errno == EINVAL);
}

}  // namespace file_state_test
