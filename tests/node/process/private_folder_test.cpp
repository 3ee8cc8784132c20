#include "node/process/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "catch.hpp"

namespace private_folder_test {

using namespace taas;
using namespace taas::node;

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
  auto first = PrivateFolder::make();
  REQUIRE(first.has_value());
  const auto parent = std::filesystem::path(first->path()).parent_path();
  std::string stale = parent / "run-XXXXXX";
  REQUIRE(::mkdtemp(stale.data()) != nullptr);
  auto second = PrivateFolder::make();
  REQUIRE(second.has_value());
  CHECK_FALSE(std::filesystem::exists(stale));
  CHECK(std::filesystem::exists(first->path()));
  CHECK(first->path() != second->path());
  CHECK(std::filesystem::path(second->path()).parent_path() == parent);
}

TEST_CASE("a folder of the user's own stays, whatever its name") {
  for (const auto* parent : {"/tmp/taas-run-", "/tmp/run-", "/tmp/taas-"}) {
    auto users = std::string(parent) + "XXXXXX";
    REQUIRE(::mkdtemp(users.data()) != nullptr);
    std::ofstream(users + "/model.pt") << "weeks of work";
    auto folder = PrivateFolder::make();
    CHECK(folder.has_value());
    CHECK(std::filesystem::exists(users + "/model.pt"));
    std::filesystem::remove_all(users);
  }
}

TEST_CASE("its parent is one that nobody else may enter") {
  const auto folder = PrivateFolder::make();
  REQUIRE(folder.has_value());
  struct stat status {};
  const auto parent = std::filesystem::path(folder->path()).parent_path();
  REQUIRE(::stat(parent.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(status.st_uid == ::geteuid());
}

}  // namespace private_folder_test
