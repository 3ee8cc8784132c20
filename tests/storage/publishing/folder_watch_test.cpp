#include "storage/publishing/folder_watch.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/fd.hpp"
#include "catch.hpp"
#include "storage/temporary_folder.hpp"

namespace folder_watch_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

struct Watched {
  struct Folder {
    const TemporaryFolder& top;
    std::string operator/(const std::string& name) const { return top / ("watched/" + name); }
  };
  TemporaryFolder top;
  Folder folder{top};
  boost::asio::io_context io;
  std::vector<FoundFile> found;
  int replacements = 0;
  std::vector<std::size_t> found_at_mark;
  std::unique_ptr<FolderWatch> watch = start();

  std::unique_ptr<FolderWatch> start() {
    fs::create_directory(top / "watched");
    FolderWatch::Callbacks calls;
    calls.on_files = [this](const std::vector<FoundFile>& files) {
      found.insert(found.end(), files.begin(), files.end());
    };
    calls.on_mark = [this] { found_at_mark.push_back(found.size()); };
    calls.on_replaced = [this] { ++replacements; };
    return FolderWatch::start(io, HeldFolder::open(top.path()).value(), "watched", std::move(calls)).value();
  }

  bool has(const std::string& name, bool closed) {
    return std::any_of(found.begin(), found.end(), [&](const FoundFile& file) {
      return file.name == name && (file.how != FoundFile::How::kThere) == closed;
    });
  }
  /// Runs the loop until a file is told of; false after ten seconds without.
  bool waits_for(const std::string& name, bool closed = true) {
    while (!has(name, closed)) {
      if (io.run_one_for(std::chrono::seconds(10)) == 0) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("a file is told of when it is closed") {
  Watched watched;
  Fd writer(::open((watched.folder / "a").c_str(), O_WRONLY | O_CREAT, 0644));
  CHECK(watched.waits_for("a", false));
  CHECK_FALSE(watched.has("a", true));
  writer.reset();
  CHECK(watched.waits_for("a"));
}

TEST_CASE("renames and links into place are told of") {
  Watched watched;
  write_text(watched.folder / "a.tmp", "text");
  fs::rename(watched.folder / "a.tmp", watched.folder / "a");
  CHECK(watched.waits_for("a"));
  fs::create_hard_link(watched.folder / "a", watched.folder / "b");
  CHECK(watched.waits_for("b", false));
}

TEST_CASE("folders made later are watched, and what was in them is found") {
  Watched watched;
  write_text(watched.folder / "x/y/before", "text");
  CHECK(watched.waits_for("x/y/before", false));
  write_text(watched.folder / "x/y/after", "text");
  CHECK(watched.waits_for("x/y/after"));
}

TEST_CASE("a renamed folder is known by its new name") {
  Watched watched;
  write_text(watched.folder / "old/deep/a", "text");
  REQUIRE(watched.waits_for("old/deep/a", false));
  fs::rename(watched.folder / "old", watched.folder / "new");
  CHECK(watched.waits_for("new/deep/a", false));
  write_text(watched.folder / "new/deep/b", "text");
  CHECK(watched.waits_for("new/deep/b"));
}

TEST_CASE("nothing is told after the end") {
  Watched watched;
  write_text(watched.folder / "a", "text");
  watched.watch.reset();
  watched.io.run_for(std::chrono::seconds(10));
  CHECK(watched.found.empty());
}

TEST_CASE("a mark comes after all that has happened before it, and before all that happens later") {
  Watched watched;
  for (const auto* name : {"a", "b"}) write_text(watched.folder / name, "text");
  watched.watch->mark();
  write_text(watched.folder / "c", "text");
  REQUIRE(watched.waits_for("c"));
  REQUIRE(watched.found_at_mark.size() == 1);
  const auto before = watched.found_at_mark.front();
  auto told_before = [&](const std::string& name) {
    return std::any_of(watched.found.begin(), watched.found.begin() + static_cast<long>(before),
                       [&](const FoundFile& file) { return file.name == name; });
  };
  CHECK(told_before("a"));
  CHECK(told_before("b"));
  CHECK_FALSE(told_before("c"));
}

TEST_CASE("what has happened is told at once where it is asked for") {
  Watched watched;
  write_text(watched.folder / "a", "text");
  watched.watch->mark();
  watched.watch->drain();
  CHECK(watched.has("a", true));
  CHECK(watched.found_at_mark.size() == 1);
}

TEST_CASE("that something else has got the folder's name is told, and the folder itself goes on being watched") {
  Watched watched;
  fs::rename(watched.top / "watched", watched.top / "elsewhere");
  fs::create_directory_symlink("elsewhere", watched.top / "watched");
  watched.watch->drain();
  CHECK(watched.replacements == 1);
  write_text(watched.top / "elsewhere/a", "text");
  CHECK(watched.waits_for("a"));
}

}  // namespace folder_watch_test
