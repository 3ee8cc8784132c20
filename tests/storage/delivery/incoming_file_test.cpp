#include "storage/delivery/incoming_file.hpp"

#include <sys/stat.h>

#include "catch.hpp"
#include "storage/small_disk.hpp"
#include "storage/temporary_folder.hpp"

namespace incoming_file_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

Result<> receive(const std::string& files, FileHead head, const std::vector<std::string>& pieces) {
  auto file = begin_file(HeldFolder::open(files).value(), files, std::move(head));
  if (!file) return file.error();
  for (const auto& piece : pieces) {
    if (auto added = (*file)->add(piece); !added) return added;
  }
  if (!(*file)->complete()) return unavailable_error("not complete");
  return (*file)->finish();
}

std::size_t entries_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a file appears whole, with its permissions and no more than these") {
  TemporaryFolder folder;
  auto file = begin_file(HeldFolder::open(folder.path()).value(), folder.path(), {"d/model", "", 06755, 6}).value();
  REQUIRE(file->add("abc").has_value());
  CHECK_FALSE(file->complete());
  CHECK_FALSE(fs::exists(folder / "d/model"));
  REQUIRE(file->add("def").has_value());
  REQUIRE(file->complete());
  REQUIRE(file->finish().has_value());
  CHECK(read_text(folder / "d/model") == "abcdef");
  struct stat found {};
  REQUIRE(::stat((folder / "d/model").c_str(), &found) == 0);
  CHECK((found.st_mode & 07700) == 0700);
  CHECK((found.st_mode & 06000) == 0);
  CHECK(entries_in(folder / "d") == 1);
}

TEST_CASE("a file in place of a former one, and an empty one") {
  TemporaryFolder folder;
  REQUIRE(receive(folder.path(), {"a", "", 0644, 3}, {"old"}).has_value());
  REQUIRE(receive(folder.path(), {"a", "", 0644, 5}, {"ne", "wer"}).has_value());
  CHECK(read_text(folder / "a") == "newer");
  REQUIRE(receive(folder.path(), {"empty", "", 0600, 0}, {}).has_value());
  CHECK(fs::file_size(folder / "empty") == 0);
}

TEST_CASE("what is not whole was never there") {
  TemporaryFolder folder;
  begin_file(HeldFolder::open(folder.path()).value(), folder.path(), {"a", "", 0644, 10}).value()->add("half").value();
  CHECK(entries_in(folder.path()) == 0);
  CHECK_FALSE(receive(folder.path(), {"a", "", 0644, 2}, {"abc"}).has_value());
  CHECK(entries_in(folder.path()) == 0);
}

TEST_CASE("names and links that lead out of the folder are refused") {
  TemporaryFolder folder;
  auto files = folder / "run/output";
  fs::create_directories(files);
  for (const auto* name : {"../x", "/tmp/x", "a/../../x", ""}) {
    INFO(name);
    CHECK_FALSE(receive(files, {name, "", 0644, 1}, {"x"}).has_value());
    CHECK_FALSE(receive(files, {name, "target", 0777, 0}, {}).has_value());
  }
  CHECK(entries_in(folder / "run") == 1);
  REQUIRE(receive(files, {"d/last", "../a", 0777, 0}, {}).has_value());
  CHECK(fs::read_symlink(files + "/d/last") == "../a");
  CHECK_FALSE(receive(files, {"d/last", "../../a", 0777, 0}, {}).has_value());
  CHECK_FALSE(receive(files, {"d/last/x", "", 0644, 1}, {"x"}).has_value());  // not through a link
}

TEST_CASE("where links may lead") {
  auto leads = [](const std::string& name, const std::string& to) { return link_stays_below(name, to, "/run/output"); };
  CHECK(leads("last", "step-5"));
  CHECK(leads("last", "./a/./b"));
  CHECK(leads("a/b/last", "../../c"));
  CHECK(leads("last", "/run/output/a/b"));
  CHECK_FALSE(leads("last", "../x"));
  CHECK_FALSE(leads("a/last", "../../x"));
  CHECK_FALSE(leads("last", "/etc/passwd"));
  CHECK_FALSE(leads("last", "/run/output/../x"));
  CHECK_FALSE(leads("last", "/run/output"));
  CHECK_FALSE(leads("a/b", "link/../../.."));
  CHECK_FALSE(leads("a/b/c", "link/.."));  // above wherever the link leads
  CHECK_FALSE(leads("last", ""));
  CHECK_FALSE(leads("last", std::string("a\0b", 3)));
}

TEST_CASE("a disk that is full is said with the file's name, and nothing stays") {
  SmallDisk disk("size=64k");
  if (!disk.mounted()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  auto failed = receive(disk.path(), {"big", "", 0644, 1 << 20}, {std::string(1 << 20, 'x')});
  REQUIRE_FALSE(failed.has_value());
  CHECK_THAT(failed.error().message, ContainsSubstring("cannot write " + disk.path() + "/big"));
  CHECK(entries_in(disk.path()) == 0);
}

}  // namespace incoming_file_test
