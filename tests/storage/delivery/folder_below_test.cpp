#include "storage/delivery/folder_below.hpp"

#include <cerrno>
#include <climits>

#include "catch.hpp"
#include "storage/temporary_folder.hpp"

namespace folder_below_test {

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

}  // namespace folder_below_test
