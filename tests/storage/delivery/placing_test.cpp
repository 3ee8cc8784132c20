#include "storage/delivery/placing.hpp"

#include "catch.hpp"
#include "storage/temporary_folder.hpp"

namespace placing_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

struct Run {
  TemporaryFolder folder;
  std::string files = folder / "output";

  Run() { fs::create_directories(files); }
  void has(const std::string& name, const std::string& text) { write_text(files + "/" + name, text); }
  void came(int node, const std::string& name, const std::string& text) {
    write_text(waiting(node) + "/" + name, text);
  }
  [[nodiscard]] std::string waiting(int node) const { return folder / (".delivered/" + std::to_string(node)); }
  [[nodiscard]] std::string read(const std::string& name) const { return read_text(files + "/" + name); }
  Placed place(int nodes) {
    std::vector<Delivered> delivered;
    for (int i = 1; i <= nodes; ++i) {
      auto number = std::to_string(i);
      delivered.push_back(
          {{HeldFolder::open(folder.path()).value(), ".delivered/" + number}, "node_" + number, "host" + number});
    }
    return place_delivered({HeldFolder::open(folder.path()).value(), "output"}, delivered);
  }
};

}  // namespace

TEST_CASE("files of several machines come together") {
  Run run;
  run.has("shards/0", "zero");
  run.came(1, "shards/1", "one");
  run.came(2, "shards/2", "two");
  fs::create_symlink("shards/2", run.waiting(2) + "/last");
  auto placed = run.place(2);
  CHECK(placed.error == "");
  CHECK(placed.remarks.empty());
  CHECK(placed.files == 3);
  CHECK(run.read("shards/0") + run.read("shards/1") + run.read("last") == "zeroonetwo");
  CHECK_FALSE(fs::exists(run.folder / ".delivered"));
}

TEST_CASE("the same content is one file") {
  Run run;
  std::string large(300'000, 'x');
  run.has("a", large);
  run.came(1, "a", large);
  auto placed = run.place(1);
  CHECK(placed.files == 0);
  CHECK(placed.remarks.empty());
  CHECK_FALSE(fs::exists(run.files + "/node_1"));
  CHECK_FALSE(fs::exists(run.waiting(1)));
}

TEST_CASE("another content of the same name is kept beside it, and told") {
  Run run;
  std::string large(300'000, 'x');
  run.has("a", large);
  auto other = large;
  other.back() = 'y';
  run.came(1, "a", other);
  run.came(1, "b/c", "one");
  run.came(2, "b/c", "two");
  auto placed = run.place(2);
  CHECK(placed.error == "");
  CHECK(placed.files == 3);
  CHECK(run.read("a") == large);
  CHECK(run.read("node_1/a") == other);
  CHECK(run.read("b/c") == "one");
  CHECK(run.read("node_2/b/c") == "two");
  REQUIRE(placed.remarks.size() == 2);
  CHECK_THAT(placed.remarks[0], ContainsSubstring("a of host1 differs"));
}

TEST_CASE("a file where another machine has a folder") {
  Run run;
  run.has("a", "file");
  run.has("b/c", "in a folder");
  run.came(1, "a/x", "in a folder");
  run.came(1, "b", "file");
  auto placed = run.place(1);
  CHECK(placed.error == "");
  CHECK(run.read("node_1/a/x") == "in a folder");
  CHECK(run.read("node_1/b") == "file");
  CHECK(run.read("a") == "file");
}

TEST_CASE("what has no place stays where it is, and is named") {
  Run run;
  run.has("a", "first");
  run.has("node_1/a", "the program's own");
  run.came(1, "a", "second");
  run.came(1, "b", "fine");
  auto placed = run.place(1);
  CHECK(placed.error == "host1: a: there is another file of this name; it stays in " + run.waiting(1));
  CHECK(read_text(run.waiting(1) + "/a") == "second");
  CHECK(run.read("a") == "first");
  CHECK(run.read("node_1/a") == "the program's own");
  CHECK(run.read("b") == "fine");
}

TEST_CASE("links among files that move lead to where these are") {
  Run run;
  run.came(1, "step-5", "five");
  fs::create_symlink(run.waiting(1) + "/step-5", run.waiting(1) + "/last");
  CHECK(run.place(1).error == "");
  CHECK(run.read("last") == "five");
}

TEST_CASE("no link among the run's files is followed") {
  Run run;
  TemporaryFolder elsewhere;
  fs::create_directory_symlink(elsewhere.path(), run.files + "/d");
  run.came(1, "d/x", "text");
  run.place(1);
  CHECK(fs::is_empty(elsewhere.path()));
  CHECK(run.read("node_1/d/x") == "text");
}

TEST_CASE("a machine that sent nothing") {
  Run run;
  auto placed = run.place(2);
  CHECK(placed.error == "");
  CHECK(placed.files == 0);
}

TEST_CASE("what a link in the place of the delivered files leads to is not moved") {
  Run run;
  TemporaryFolder victim;
  write_text(victim / "notes", "weeks of work");
  fs::create_directory(run.folder / ".delivered");
  fs::create_directory_symlink(victim.path(), run.waiting(1));
  const auto placed = run.place(1);
  CHECK_THAT(placed.error, ContainsSubstring("is a symbolic link to " + victim.path()));
  CHECK(read_text(victim / "notes") == "weeks of work");
  CHECK(fs::is_empty(run.files));
}

TEST_CASE("published files that were replaced by a link get no others") {
  Run run;
  TemporaryFolder victim;
  fs::remove(run.files);
  fs::create_directory_symlink(victim.path(), run.files);
  run.came(1, "a", "text");
  CHECK_THAT(run.place(1).error, ContainsSubstring("is a symbolic link to " + victim.path()));
  CHECK(fs::is_empty(victim.path()));
  CHECK(read_text(run.waiting(1) + "/a") == "text");
}

}  // namespace placing_test
