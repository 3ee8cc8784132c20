#include "proc/spawn/landlock.hpp"

#include <fstream>

#include "proc/processes.hpp"

namespace landlock_test {

using namespace taas;
using namespace taas::test;

namespace {

/// project/{shared/deep/old, shared2/, notes}, link -> project/shared
struct Tree {
  Tree() {
    std::filesystem::create_directories(folder / "project/shared/deep");
    std::filesystem::create_directories(folder / "project/shared2");
    std::ofstream(folder / "project/shared/deep/old") << "content";
    std::ofstream(folder / "project/notes") << "notes";
    std::filesystem::create_symlink(folder / "project/shared", folder / "link");
  }
  TemporaryFolder folder;
};

constexpr const char* kNoLandlock = "this kernel has no Landlock";

/// Exit code of a shell script that runs in the tree under the rules.
int run_under(const Ruleset& rules, const Tree& tree, const std::string& script) {
  auto request = shell(script);
  request.working_directory = tree.folder.path();
  request.read_only = &rules;
  ExitStatus status;
  Fd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  request.standard_error = &nowhere;
  output_of(std::move(request), &status);
  return status.code;
}

Result<Ruleset> protect(const Tree& tree, const std::string& name) {
  std::vector<std::string> directories = {tree.folder / name};
  return make_read_only(directories);
}

}  // namespace

TEST_CASE("nothing below a protected folder can be changed, by any way there") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  auto rules = protect(tree, "project/shared");
  REQUIRE(rules.has_value());
  for (auto* script : {
           "echo x > project/shared/new",
           "echo x > project/shared/deep/old",
           "echo x >> project/shared/deep/old",
           "echo x > link/deep/new",
           "rm project/shared/deep/old",
           "mkdir project/shared/deep/folder",
           "ln -s target project/shared/symlink",
           "mkfifo project/shared/fifo",
           "mv project/shared/deep/old project/shared2/",
           "mv project/shared2 project/shared/",
           "truncate -s 0 project/shared/deep/old",
           "ln project/shared/deep/old project/shared2/link && echo x > project/shared2/link",
       }) {
    INFO(script);
    CHECK(run_under(*rules, tree, script) != 0);
  }
  CHECK(run_under(*rules, tree, "test \"$(cat project/shared/deep/old)\" = content && ls project/shared") == 0);
}

TEST_CASE("what lies beside a protected folder stays writable") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  auto rules = protect(tree, "project/shared");
  REQUIRE(rules.has_value());
  for (auto* script : {
           "echo x > project/shared2/new && mkdir project/shared2/folder && mv project/shared2/new "
           "project/shared2/folder",
           "echo more >> project/notes",
           "echo x > /dev/null",
           "echo x > \"$(mktemp -p /dev/shm)\" && rm /dev/shm/tmp.*",
       }) {
    INFO(script);
    CHECK(run_under(*rules, tree, script) == 0);
  }
}

TEST_CASE("the known limit: no new entries directly in a parent of the protected folder") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  auto rules = protect(tree, "project/shared");
  REQUIRE(rules.has_value());
  CHECK(run_under(*rules, tree, "echo x > project/new") != 0);
  CHECK(run_under(*rules, tree, "rm project/notes") != 0);
}

TEST_CASE("the known limit: attributes, and files that have another name elsewhere") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  std::filesystem::create_hard_link(tree.folder / "project/shared/deep/old", tree.folder / "project/shared2/other");
  auto rules = protect(tree, "project/shared");
  REQUIRE(rules.has_value());
  CHECK(run_under(*rules, tree, "chmod 600 project/shared/deep/old && touch -d yesterday project/shared/deep/old") ==
        0);
  CHECK(run_under(*rules, tree, "echo x > project/shared2/other") == 0);
}

TEST_CASE("what an older kernel does not refuse is known") {
  CHECK_THAT(landlock_gap(1), ContainsSubstring("truncate"));
  CHECK_THAT(landlock_gap(2), ContainsSubstring("truncate"));
  CHECK(landlock_gap(3).empty());
  CHECK(landlock_gap(7).empty());
}

TEST_CASE("symbolic links and relative paths are resolved, and several folders can be protected") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  auto before = std::filesystem::current_path();
  std::filesystem::current_path(tree.folder.path());
  std::vector<std::string> directories = {"link", "./project/../project/shared2"};
  auto rules = make_read_only(directories);
  std::filesystem::current_path(before);
  REQUIRE(rules.has_value());
  CHECK(run_under(*rules, tree, "echo x > project/shared/new") != 0);
  CHECK(run_under(*rules, tree, "echo x > project/shared2/new") != 0);
  CHECK(run_under(*rules, tree, "echo x >> project/notes") == 0);
}

TEST_CASE("an exception cannot take the whole protection away") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  std::vector<std::string> directories = {tree.folder / "project/shared", tree.folder / "project/shared2"};
  for (auto* name : {"project/shared", "project", "link", "project/../project/shared2/.", ""}) {
    std::vector<std::string> but_for = {tree.folder / name};
    auto rules = make_read_only(directories, but_for);
    INFO(but_for.front());
    REQUIRE_FALSE(rules.has_value());
    CHECK_THAT(rules.error().message, ContainsSubstring(but_for.front()) && ContainsSubstring("folders within"));
  }
}

TEST_CASE("an exception outside of what is protected is an error") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  std::vector<std::string> directories = {tree.folder / "project/shared"};
  std::vector<std::string> but_for = {tree.folder / "project/shared2"};
  auto rules = make_read_only(directories, but_for);
  REQUIRE_FALSE(rules.has_value());
  CHECK_THAT(rules.error().message, ContainsSubstring(but_for.front()) && ContainsSubstring("in none of the folders"));
}

TEST_CASE("folders within a protected one can stay writable") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  std::vector<std::string> directories = {tree.folder / "project"};
  std::vector<std::string> but_for = {tree.folder / "project/shared/deep", tree.folder / "missing"};
  auto rules = make_read_only(directories, but_for);
  REQUIRE(rules.has_value());
  CHECK(run_under(*rules, tree, "echo x > project/shared/deep/new && rm project/shared/deep/old") == 0);
  CHECK(run_under(*rules, tree, "echo x > project/shared/new") != 0);
  CHECK(run_under(*rules, tree, "echo x > project/notes") != 0);
}

TEST_CASE("children of the process are held to the rules too, the launcher is not") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  auto rules = protect(tree, "project/shared");
  REQUIRE(rules.has_value());
  CHECK(run_under(*rules, tree, "sh -c 'sh -c \"echo x > project/shared/new\"'") != 0);
  std::ofstream(tree.folder / "project/shared/by-launcher") << "x";
  CHECK(std::filesystem::exists(tree.folder / "project/shared/by-launcher"));
}

TEST_CASE("a folder that is missing or is none is named") {
  if (!landlock_supported()) SKIP_TEST(kNoLandlock);
  Tree tree;
  auto missing = protect(tree, "project/missing");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().system_errno == ENOENT);
  CHECK_THAT(missing.error().message, ContainsSubstring(tree.folder / "project/missing"));
  auto file = protect(tree, "project/notes");
  REQUIRE_FALSE(file.has_value());
  CHECK(file.error().system_errno == ENOTDIR);
  CHECK_THAT(file.error().message, ContainsSubstring(tree.folder / "project/notes"));
}

}  // namespace landlock_test
