#include "base/folders/beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <climits>

#include "base/files.hpp"
#include "catch.hpp"
#include "storage/temporary_folder.hpp"

namespace beneath_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

TEST_CASE("names that lead out of a folder, or nowhere, are none below it") {
  for (const auto* good : {"a", "a/b", ".hidden/x", "a b\n", "..a", "a..", "\xff"}) {
    INFO(good);
    CHECK(is_name_below(good));
  }
  for (const std::string bad : {"", "/", "/a", "..", ".", "../a", "a/..", "a/../../b", "a/./b", "a/"}) {
    INFO(bad);
    CHECK_FALSE(is_name_below(bad));
  }
  CHECK_FALSE(is_name_below(std::string("a\0b", 3)));
  CHECK_FALSE(is_name_below(std::string(NAME_MAX + 1, 'x')));
  std::string deep;
  while (deep.size() < PATH_MAX) deep += "d/";
  CHECK_FALSE(is_name_below(deep + "x"));
}

TEST_CASE("a place is found, and made where that is wanted") {
  TemporaryFolder folder;
  CHECK(open_place_below(folder.path(), "a/b/c", Missing::kRefuse).error().system_errno == ENOENT);
  auto place = open_place_below(folder.path(), "a/b/c", Missing::kMake);
  REQUIRE(place.has_value());
  CHECK(place->name == "c");
  CHECK(fs::is_directory(folder / "a/b"));
  CHECK_FALSE(open_place_below(folder.path(), "../x", Missing::kMake).has_value());
}

TEST_CASE("no link on the way is followed") {
  TemporaryFolder folder, elsewhere;
  fs::create_directory_symlink(elsewhere.path(), folder / "link");
  fs::create_directory(folder / "inner");
  fs::create_directory_symlink("inner", folder / "inside");
  for (const auto* name : {"link/x", "link/deep/x", "inside/x"}) {
    INFO(name);
    CHECK_FALSE(open_place_below(folder.path(), name, Missing::kMake).has_value());
  }
  CHECK(fs::is_empty(elsewhere.path()));
  CHECK(open_place_below(folder.path(), "link", Missing::kMake).has_value());  // the link itself may be replaced
}

TEST_CASE("a file is opened beneath a folder that is held, whatever has its path by then") {
  TemporaryFolder folder, elsewhere;
  fs::create_directories(folder / "held/inner");
  write_text(folder / "held/inner/file", "ours");
  write_text(elsewhere / "file", "theirs");
  auto held = open_folder(folder / "held");
  REQUIRE(held.has_value());
  fs::rename(folder / "held", folder / "moved");
  fs::create_directory_symlink(elsewhere.path(), folder / "held");
  auto file = open_beneath(*held, "inner/file", O_RDONLY);
  REQUIRE(file.has_value());
  CHECK(read_all(*file).value() == "ours");
  CHECK_FALSE(open_beneath(*held, "file", O_RDONLY).has_value());
  CHECK_FALSE(open_beneath(*held, "../held/file", O_RDONLY).has_value());
}

TEST_CASE("neither a link nor a FIFO is waited for or followed") {
  TemporaryFolder folder, elsewhere;
  write_text(elsewhere / "victim", "theirs");
  fs::create_symlink(elsewhere / "victim", folder / "link");
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  auto held = open_folder(folder.path());
  REQUIRE(held.has_value());
  CHECK(open_beneath(*held, "link", O_RDONLY).error().system_errno == ELOOP);
  CHECK(open_beneath(*held, "link", O_WRONLY | O_TRUNC).error().system_errno == ELOOP);
  CHECK(open_beneath(*held, "fifo", O_RDONLY).has_value());  // and returns
  CHECK(open_beneath(*held, "fifo", O_WRONLY).error().system_errno == ENXIO);
  CHECK(read_text(elsewhere / "victim") == "theirs");
  CHECK(describe_beneath(*held, "link") == "a symbolic link to " + (elsewhere / "victim"));
  CHECK(describe_beneath(*held, "none") == "nothing");
}

}  // namespace beneath_test
