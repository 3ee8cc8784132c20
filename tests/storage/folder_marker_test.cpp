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
  for (auto& mark : marks) threads.emplace_back([&] { mark = mark_folder(folder.path(), "run").value(); });
  for (auto& thread : threads) thread.join();
  CHECK(std::set<std::string>(marks.begin(), marks.end()).size() == 1);
  CHECK(marks.front().rfind("run.", 0) == 0);
}

TEST_CASE("other folders have other marks") {
  TemporaryFolder one, other;
  CHECK(mark_folder(one.path(), "run").value() != mark_folder(other.path(), "run").value());
}

TEST_CASE("what another run has left is not this run's") {
  TemporaryFolder folder;
  mark_folder(folder.path(), "run-1").value();
  auto refused = mark_folder(folder.path(), "run");
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, ContainsSubstring(folder.path() + " is left over from another run"));
}

TEST_CASE("a folder that takes no mark has none") {
  TemporaryFolder folder;
  CHECK(mark_folder(folder / "missing", "run").value() == "");
}

}  // namespace folder_marker_test
