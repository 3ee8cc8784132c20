#include "node/process/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/ids.hpp"
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

TEST_CASE("what ranks have put in the place of a private folder stays") {
  const std::filesystem::path root = "/tmp/taas-private-" + random_hex(4);
  const auto victim = root / "victim";
  std::filesystem::create_directories(victim);
  std::ofstream(victim / "notes") << "weeks of work";
  std::string path;
  const bool is_link = GENERATE(true, false);
  {
    auto folder = PrivateFolder::make();
    REQUIRE(folder.has_value());
    path = folder->path();
    std::ofstream(path + "/plan.json") << "{}";
    std::filesystem::create_directory_symlink(victim, path + "/link");
    std::filesystem::rename(path, root / "moved");
    if (is_link) std::filesystem::create_directory_symlink(victim, path);
    if (!is_link) std::filesystem::rename(victim, path);
  }
  const auto kept = std::filesystem::path(path) / "notes";
  CHECK(std::filesystem::file_size(kept) == std::string("weeks of work").size());
  CHECK(std::filesystem::is_empty(root / "moved"));  // its own content went
  std::filesystem::remove_all(path);
  std::filesystem::remove_all(root);
}

TEST_CASE("a link among private folders is not one that was left over") {
  const std::filesystem::path victim = "/tmp/taas-private-" + random_hex(4);
  std::filesystem::create_directories(victim);
  std::ofstream(victim / "notes") << "weeks of work";
  const auto first = PrivateFolder::make();
  REQUIRE(first.has_value());
  const auto link = std::filesystem::path(first->path()).parent_path() / "run-link";
  std::filesystem::create_directory_symlink(victim, link);
  CHECK(PrivateFolder::make().has_value());
  CHECK(std::filesystem::exists(victim / "notes"));
  std::filesystem::remove(link);
  std::filesystem::remove_all(victim);
}

}  // namespace private_folder_test
