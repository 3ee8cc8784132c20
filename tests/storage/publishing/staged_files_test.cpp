#include "storage/publishing/staged_files.hpp"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "catch.hpp"
#include "storage/temporary_folder.hpp"

namespace staged_files_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

HeldFolder held(const std::string& path) { return HeldFolder::open(path).value(); }

Names names_below(const std::string& folder) {
  auto names = files_below(held(folder)).names;
  std::sort(names.begin(), names.end());
  return names;
}

/// Somebody whom permissions stop, for the file system only.
class Nobody {
 public:
  Nobody() { ::setfsuid(65534); }
  ~Nobody() { ::setfsuid(::geteuid()); }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;
};

struct Staging {
  TemporaryFolder folder;
  std::string staging = folder / "staging";
  std::map<std::string, FileState> published;

  void write(const std::string& name, const std::string& text) { write_text(staging + "/" + name, text); }
  /// As if what is there had just been published.
  void publish(const std::string& name) {
    auto file = StagedFile::open(held(staging), name);
    published[name] = file ? file->state() : link_state(held(staging), name).value();
  }
  void remove() const { remove_published(held(staging), published, learn_refusal(held(folder.path()))); }
};

}  // namespace

TEST_CASE("files below a folder are files and links, and folders the inner ones first") {
  TemporaryFolder folder;
  write_text(folder / "a", "");
  write_text(folder / "b/c/d", "");
  fs::create_symlink("b", folder / "link");
  CHECK(names_below(folder.path()) == Names{"a", "b/c/d", "link"});
  CHECK(files_below(held(folder.path())).folders == Names{"b/c", "b"});
}

TEST_CASE("a link to a folder is a link, and nothing behind it is listed") {
  TemporaryFolder folder, victim;
  write_text(victim / "precious", "text");
  fs::create_directory_symlink(victim.path(), folder / "sub");
  CHECK(names_below(folder.path()) == Names{"sub"});
}

TEST_CASE("a folder that cannot be listed is named, and hides no other") {
  TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0755);
  for (const auto* name : {"a/1", "sealed/2", "z/3"}) write_text(folder / name, "");
  ::chmod((folder / "sealed").c_str(), 0);
  FilesBelow found;
  {
    Nobody nobody;
    found = files_below(held(folder.path()));
  }
  ::chmod((folder / "sealed").c_str(), 0700);
  std::sort(found.names.begin(), found.names.end());
  CHECK(found.names == Names{"a/1", "z/3"});
  REQUIRE(found.unread.size() == 1);
  CHECK(found.unread.begin()->first == "sealed");
  CHECK_THAT(found.unread.begin()->second.message, ContainsSubstring(folder / "sealed"));
}

TEST_CASE("nothing behind a link that has taken a folder's place is removed") {
  Staging place;
  place.write("sub/precious", "text");
  place.publish("sub/precious");
  fs::rename(place.staging + "/sub", place.folder / "victim");
  fs::create_directory_symlink(place.folder / "victim", place.staging + "/sub");
  place.remove();
  CHECK(read_text(place.folder / "victim/precious") == "text");
}

TEST_CASE("what is published is removed, with its folders") {
  Staging place;
  place.write("a", "one");
  place.write("sub/deep/b", "two");
  fs::create_symlink("a", place.staging + "/link");
  for (const auto* name : {"a", "sub/deep/b", "link"}) place.publish(name);
  place.remove();
  CHECK(fs::is_empty(place.staging));
}

TEST_CASE("what is not published stays, and so does what has changed since") {
  Staging place;
  place.write("published", "one");
  place.write("sub/rewritten", "two");
  place.publish("published");
  place.publish("sub/rewritten");
  place.write("sub/rewritten", "longer");
  place.write("late", "three");
  place.remove();
  CHECK(names_below(place.staging) == Names{"late", "sub/rewritten"});
}

TEST_CASE("names of one file are removed together") {
  Staging place;
  place.write("a", "one");
  fs::create_hard_link(place.staging + "/a", place.staging + "/b");
  place.publish("a");
  place.publish("b");
  place.remove();
  CHECK(fs::is_empty(place.staging));
}

TEST_CASE("a file that somebody has open for writing stays") {
  Staging place;
  place.write("a", "one");
  if (learn_refusal(held(place.folder.path())) == Refusal::kMeansNothing) SKIP_TEST("this file system has no leases");
  place.publish("a");
  Fd writer(::open((place.staging + "/a").c_str(), O_WRONLY));
  place.remove();
  CHECK(names_below(place.staging) == Names{"a"});
}

TEST_CASE("another file that took the name stays, under that name") {
  Staging place;
  place.write("a", "one");
  place.write("other", "another");
  auto file = StagedFile::open(held(place.staging), "a").value();
  fs::rename(place.staging + "/other", place.staging + "/a");
  CHECK_FALSE(remove_if_same(held(place.staging), "a", file));
  CHECK(read_text(place.staging + "/a") == "another");
  CHECK(names_below(place.staging) == Names{"a"});
}

TEST_CASE("a file that somebody is about to write stays") {
  Staging place;
  place.write("a", "one");
  auto file = StagedFile::open(held(place.staging), "a").value();
  if (file.writers() != StagedFile::Writers::kNone) SKIP_TEST("this file system has no leases");
  CHECK_FALSE(Fd(::open((place.staging + "/a").c_str(), O_WRONLY | O_NONBLOCK)));
  CHECK_FALSE(remove_if_same(held(place.staging), "a", file));
  CHECK(names_below(place.staging) == Names{"a"});
}

}  // namespace staged_files_test
