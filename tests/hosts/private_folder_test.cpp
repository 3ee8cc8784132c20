#include "hosts/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "catch.hpp"

namespace private_folder_test {

using namespace taas;
using namespace taas::hosts;

TEST_CASE("a private folder is its owner's and ends with it") {
  std::string path;
  {
    auto folder = PrivateFolder::make();
    REQUIRE(folder.has_value());
    path = folder->path();
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    std::ofstream(path + "/file") << "text";
    auto moved = std::move(*folder);
    CHECK(std::filesystem::exists(path + "/file"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("what a killed owner left is removed by the next, what a living one has is not") {
  std::string stale = "/tmp/taas-run-XXXXXX";
  REQUIRE(::mkdtemp(stale.data()) != nullptr);
  auto first = PrivateFolder::make();
  auto second = PrivateFolder::make();
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK_FALSE(std::filesystem::exists(stale));
  CHECK(std::filesystem::exists(first->path()));
  CHECK(first->path() != second->path());
}

}  // namespace private_folder_test
