#include "base/folders/held_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/files.hpp"
#include "catch.hpp"
#include "storage/small_disk.hpp"
#include "storage/temporary_folder.hpp"

namespace held_folder_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

constexpr const char* kWork = "weeks of work";

/// A folder that is held, and a victim beside it.
struct Places {
  Places() {
    fs::create_directory(folder / "held");
    write_text(folder / "victim/notes", kWork);
    held = HeldFolder::open(folder / "held").value();
  }
  [[nodiscard]] std::string inner(const std::string& name) const { return folder / ("held/" + name); }
  void link(const std::string& to, const std::string& name) const { fs::create_symlink(folder / to, inner(name)); }
  [[nodiscard]] bool victim_is_whole() const {
    return read_text(folder / "victim/notes") == kWork && fs::exists(folder / "victim/notes") &&
           std::distance(fs::directory_iterator(folder / "victim"), {}) == 1;
  }

  TemporaryFolder folder;
  HeldFolder held;
};

std::string appended(const HeldFolder& folder, const std::string& name) {
  const auto file = folder.open_to_append(name, 0644);
  if (!file) return file.error().message;
  return write_all(*file, "more") ? "" : "not written";
}

}  // namespace

TEST_CASE("files are appended to, read and replaced beneath a folder") {
  const Places places;
  CHECK(appended(places.held, "log") + appended(places.held, "log") == "");
  CHECK(places.held.read("log", 100).value() == "moremore");
  CHECK(places.held.read("log", 5).value() == "morem");
  REQUIRE(places.held.replace("log", "new", 0600).has_value());
  CHECK(read_text(places.inner("log")) == "new");
  REQUIRE(places.held.make_folder("a/b").has_value());
  REQUIRE(places.held.make_folder("a/b").has_value());
  CHECK(places.held.replace("a/b/file", "text", 0600).has_value());
  CHECK(places.held.flush("a/b/file").has_value());
  CHECK(places.held.has("a/b/file"));
  CHECK_FALSE(places.held.has("a/b"));
  CHECK(places.held.read("none", 1).error().system_errno == ENOENT);
  CHECK(places.held.read("none", 1).error().message ==
        "cannot read " + places.inner("none") + ": No such file or directory");
}

TEST_CASE("a link is followed by nothing, and named") {
  const Places places;
  places.link("victim", "folder");
  places.link("victim/notes", "file");
  places.link("victim/new", "dangling");
  const auto to_victim = "folder is a symbolic link to " + (places.folder / "victim");
  CHECK_THAT(places.held.make_folder("folder").error().message, ContainsSubstring(to_victim));
  CHECK_THAT(places.held.make_folder("folder/more").error().message, ContainsSubstring(to_victim));
  CHECK_THAT(places.held.folder("folder").error().message, ContainsSubstring(to_victim));
  for (const auto* name : {"folder/notes", "folder/new", "file", "dangling"}) {
    INFO(name);
    CHECK_THAT(appended(places.held, name), ContainsSubstring(" is a symbolic link to "));
    CHECK_FALSE(places.held.read(name, 100).has_value());
  }
  CHECK_FALSE(places.held.replace("folder/notes", "", 0644).has_value());
  CHECK_FALSE(places.held.remove("folder/notes"));
  CHECK_FALSE(HeldFolder::open(places.inner("folder")).has_value());
  CHECK(places.held.read_link("file").value() == places.folder / "victim/notes");
  CHECK(places.held.replace("file", "ours", 0644).has_value());  // the link's name is ours to give
  CHECK(places.held.remove("dangling"));
  CHECK(places.victim_is_whole());
}

TEST_CASE("what is not a file of its own is neither waited for nor written") {
  const Places places;
  REQUIRE(::mkfifo(places.inner("pipe").c_str(), 0600) == 0);
  fs::create_directory(places.inner("folder"));
  fs::create_hard_link(places.folder / "victim/notes", places.inner("twice"));
  CHECK_THAT(appended(places.held, "pipe"), ContainsSubstring("pipe is a named pipe"));
  CHECK_THAT(appended(places.held, "folder"), ContainsSubstring("folder is a folder"));
  CHECK_THAT(appended(places.held, "twice"), ContainsSubstring("twice is a file with 2 names"));
  CHECK_THAT(places.held.read("pipe", 1).error().message, ContainsSubstring("pipe is a named pipe"));
  CHECK_THAT(places.held.read("folder", 1).error().message, ContainsSubstring("folder is a folder"));
  CHECK_THAT(places.held.make_folder("pipe").error().message, ContainsSubstring("pipe is a named pipe"));
  CHECK_THAT(places.held.replace("folder", "", 0644).error().message, ContainsSubstring("folder is a folder"));
  CHECK(places.held.read("twice", 100).value() == kWork);
  CHECK(places.victim_is_whole());
}

TEST_CASE("what is held is the folder, and not its path") {
  const Places places;
  fs::rename(places.folder / "held", places.folder / "moved");
  fs::create_symlink(places.folder / "victim", places.folder / "held");
  CHECK(appended(places.held, "log") == "");
  places.held.remove_content();
  CHECK(fs::is_empty(places.folder / "moved"));
  CHECK(places.victim_is_whole());
}

TEST_CASE("all in a folder is removed, and nothing that links in it lead to") {
  const Places places;
  write_text(places.inner("a/b/c"), "");
  REQUIRE(::mkfifo(places.inner("a/pipe").c_str(), 0600) == 0);
  places.link("victim", "a/b/folder");
  places.link("victim/notes", "file");
  places.held.remove_content();
  CHECK(fs::is_empty(places.inner("")));
  CHECK(places.victim_is_whole());
}

TEST_CASE("another mount is not entered, and is not emptied") {
  const Places places;
  const SmallDisk disk("size=1m");
  if (!disk.mounted()) SKIP_TEST("mounting needs root");
  const auto above = fs::path(disk.path()).parent_path().string();
  write_text(disk.path() + "/notes", kWork);
  const auto held = HeldFolder::open(above).value();
  CHECK_THAT(appended(held, "disk/log"), ContainsSubstring("disk is a mount of another file system or folder"));
  CHECK_FALSE(held.folder("disk").has_value());
  held.remove_content();
  CHECK(read_text(disk.path() + "/notes") == kWork);
}

}  // namespace held_folder_test
