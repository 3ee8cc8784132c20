#include "node/code/code_folder.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "catch.hpp"
#include "node/code/code_copy.hpp"
#include "node/code/digest.hpp"
#include "storage/temporary_folder.hpp"

namespace code_folder_test {

using namespace taas;
using namespace taas::node;
using storage::read_text;
using storage::TemporaryFolder;
using storage::write_text;
namespace fs = std::filesystem;

namespace {

run::CodeFile file(const std::string& name, const std::string& content, bool executable = false) {
  return {name, "", executable, content.size(), sha256(content)};
}

run::CodeFile link(const std::string& name, const std::string& points_to) { return {name, points_to, false, 0}; }

CodeContents contents(std::initializer_list<std::string> texts) {
  CodeContents all;
  for (const auto& text : texts) all[sha256(text)] = text;
  return all;
}

}  // namespace

TEST_CASE("a folder is compared by what is in its files") {
  const TemporaryFolder folder;
  const std::vector<run::CodeFile> files{file("a.py", "one"), file("deep/b.py", "two"), link("link", "a.py")};
  CHECK_FALSE(compare(folder / "missing", files).has_some);
  CHECK_FALSE(compare(folder.path(), files).has_some);
  CHECK(compare(folder.path(), files).different == std::vector<std::string>{"a.py", "deep/b.py", "link"});
  write_text(folder / "a.py", "one");
  write_text(folder / "deep/b.py", "TWO");
  fs::create_symlink("a.py", folder / "link");
  CHECK(compare(folder.path(), files).has_some);
  CHECK(compare(folder.path(), files).different == std::vector<std::string>{"deep/b.py"});
  write_text(folder / "deep/b.py", "two");
  write_text(folder / "more.py", "of this machine");
  CHECK(compare(folder.path(), files).different.empty());
}

TEST_CASE("a copy follows the files, and keeps what ranks have written") {
  const TemporaryFolder folder;
  auto copy = CodeFolder::make(folder / "run", "code-n1").value();
  REQUIRE(
      copy.lay_out({file("a.py", "one"), file("bin/go", "two", true), link("link", "a.py")}, contents({"one", "two"}))
          .has_value());
  CHECK(read_text(copy.path() + "/link") == "one");
  struct stat status {};
  REQUIRE(::stat((copy.path() + "/bin/go").c_str(), &status) == 0);
  CHECK((status.st_mode & S_IXUSR) != 0);
  CHECK(copy.written_by_ranks().empty());

  write_text(copy.path() + "/bin/go", "a rank's");
  write_text(copy.path() + "/bin/results", "a rank's");
  write_text(copy.path() + "/__pycache__/a.cpython-311.pyc", "compiled");
  write_text(copy.path() + "/__pycache__/notes", "a rank's");
  REQUIRE(copy.lay_out({file("a.py", "ONE"), file("bin/go", "TWO")}, contents({"ONE", "TWO"})).has_value());
  CHECK(read_text(copy.path() + "/a.py") == "ONE");
  CHECK(read_text(copy.path() + "/bin/go") == "a rank's");
  CHECK_FALSE(fs::exists(fs::symlink_status(copy.path() + "/link")));
  CHECK(copy.written_by_ranks() == std::vector<std::string>{"__pycache__/notes", "bin/go", "bin/results"});
  copy.remove();
  CHECK(read_text(copy.path() + "/bin/results") == "a rank's");
  CHECK(read_text(copy.path() + "/__pycache__/notes") == "a rank's");
  CHECK_FALSE(fs::exists(copy.path() + "/a.py"));
  CHECK_FALSE(fs::exists(copy.path() + "/__pycache__/a.cpython-311.pyc"));
}

TEST_CASE("a copy that nobody wrote to is gone without a trace") {
  const TemporaryFolder folder;
  for (const bool there : {false, true}) {
    if (there) fs::create_directories(folder / "run");
    auto copy = CodeFolder::make(folder / "run", "code-n1").value();
    REQUIRE(copy.lay_out({file("deep/er/a.py", "one")}, contents({"one"})).has_value());
    copy.remove();
    CHECK_FALSE(fs::exists(copy.path()));
    CHECK(fs::exists(folder / "run") == there);
  }
}

TEST_CASE("a link that a rank has put in the way leads nowhere") {
  const TemporaryFolder folder, victim;
  write_text(victim / "a.py", "the victim's");
  auto copy = CodeFolder::make(folder / "run", "code-n1").value();
  REQUIRE(copy.lay_out({file("deep/a.py", "one")}, contents({"one"})).has_value());
  fs::remove_all(copy.path() + "/deep");
  fs::create_directory_symlink(victim.path(), copy.path() + "/deep");
  CHECK_FALSE(copy.lay_out({file("deep/b.py", "two")}, contents({"two"})).has_value());
  copy.remove();
  CHECK(read_text(victim / "a.py") == "the victim's");
  CHECK_FALSE(fs::exists(victim / "b.py"));
}

TEST_CASE("a cache gives nothing but what its names say") {
  const TemporaryFolder folder;
  const auto cache = CodeCache::open({{"XDG_CACHE_HOME", folder / "cache"}, {"HOME", "/nowhere"}});
  const auto digest = sha256("content");
  CHECK_FALSE(cache.find(digest, 7).has_value());
  cache.add(digest, "content");
  CHECK(cache.find(digest, 7) == "content");
  CHECK_FALSE(cache.find(digest, 6).has_value());
  write_text(folder / ("cache/taas-run/code/" + in_hex(digest)), "CONTENT");
  CHECK_FALSE(cache.find(digest, 7).has_value());
  CHECK_FALSE(CodeCache::open({}).find(digest, 7).has_value());
}

TEST_CASE("a launch is moved where the copy is") {
  plan::LaunchSettings launch;
  launch.working_directory = "/home/u/project/deep";
  launch.options.program.program = "train.py";
  launch.environment["PYTHONPATH"] = "/home/u/project:/home/u/projects:/opt";
  auto moved = redirect(launch, "/home/u/project", "/copy", {file("deep/train.py", "")});
  CHECK(moved.working_directory == "/copy/deep");
  CHECK(moved.options.program.program == "/copy/deep/train.py");
  CHECK(moved.environment["PYTHONPATH"] == "/copy:/home/u/projects:/opt");
  launch.working_directory = "/home/u";
  launch.options.program.program = "/home/u/project/train.py";
  moved = redirect(launch, "/home/u/project", "/copy", {file("train.py", "")});
  CHECK(moved.working_directory == "/home/u");
  CHECK(moved.options.program.program == "/copy/train.py");
  launch.options.program.module = true;
  launch.options.program.program = "train.py";
  CHECK(redirect(launch, "/home/u", "/copy", {file("train.py", "")}).options.program.program == "train.py");
}

}  // namespace code_folder_test
