#include "storage/folder_marker.hpp"

#include <set>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"

namespace folder_marker_test {

using namespace taas;
using namespace taas::storage;

TEST_CASE("who sees the same folder gets the same mark, however many come at once") {
  TemporaryFolder folder;
  std::vector<std::string> marks(8);
  std::vector<std::thread> threads;
  for (auto& mark : marks)
    threads.emplace_back([&] { mark = mark_folder(HeldFolder::open(folder.path()).value(), "run").value(); });
  for (auto& thread : threads) thread.join();
  CHECK(std::set<std::string>(marks.begin(), marks.end()).size() == 1);
  CHECK(marks.front().rfind("run.", 0) == 0);
}

TEST_CASE("other folders have other marks") {
  TemporaryFolder one, other;
  CHECK(mark_folder(HeldFolder::open(one.path()).value(), "run").value() !=
        mark_folder(HeldFolder::open(other.path()).value(), "run").value());
}

TEST_CASE("what another run has left is not this run's") {
  TemporaryFolder folder;
  mark_folder(HeldFolder::open(folder.path()).value(), "run-1").value();
  auto refused = mark_folder(HeldFolder::open(folder.path()).value(), "run");
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, ContainsSubstring(folder.path() + " is left over from another run"));
}

TEST_CASE("a folder that takes no mark has none") {
  TemporaryFolder folder;
  CHECK(mark_folder(HeldFolder(), "run").value() == "");
}

TEST_CASE("the mark is in the folder that is held, whatever has its path") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "run");
  std::filesystem::create_directories(folder / "victim");
  const auto held = HeldFolder::open(folder / "run").value();
  std::filesystem::rename(folder / "run", folder / "moved");
  std::filesystem::create_directory_symlink(folder / "victim", folder / "run");
  CHECK(mark_folder(held, "run").value() == mark_folder(held, "run").value());
  CHECK(std::filesystem::is_empty(folder / "victim"));
}

}  // namespace folder_marker_test
