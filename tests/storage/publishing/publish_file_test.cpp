#include "storage/publishing/publish_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "catch.hpp"
#include "storage/refused_calls.hpp"
#include "storage/small_disk.hpp"
#include "storage/temporary_folder.hpp"

namespace publish_file_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

struct Place {
  TemporaryFolder folder;
  std::string staging = folder / "staging";
  std::string files = folder / "files";

  Publication staged(const std::string& name, const std::string& text) {
    write_text(staging + "/" + name, text);
    return seen(name);
  }
  [[nodiscard]] Publication seen(const std::string& name) const {
    fs::create_directories(files);
    auto from = HeldFolder::open(staging).value();
    return {from, HeldFolder::open(files).value(), name, StagedFile::open(from, name).value().state()};
  }
};

std::size_t entries(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

}  // namespace

TEST_CASE("a file appears under its final name and stays staged") {
  Place place;
  std::string text(9'000'000, 'm');
  auto publication = place.staged("sub/deep/model.pt", text);
  ::chmod((place.staging + "/sub/deep/model.pt").c_str(), 0640);
  publication = place.seen("sub/deep/model.pt");
  REQUIRE(publish_file(publication).value() == Outcome::kPublished);
  CHECK(read_text(place.files + "/sub/deep/model.pt") == text);
  CHECK(read_text(place.staging + "/sub/deep/model.pt") == text);
  CHECK(entries(place.files + "/sub/deep") == 1);
  CHECK((fs::status(place.files + "/sub/deep/model.pt").permissions() & fs::perms::mask) == fs::perms(0640));
}

TEST_CASE("an empty file is a file") {
  Place place;
  REQUIRE(publish_file(place.staged("empty", "")).value() == Outcome::kPublished);
  CHECK(fs::file_size(place.files + "/empty") == 0);
}

TEST_CASE("a new content replaces the former") {
  Place place;
  publish_file(place.staged("a", "one")).value();
  publish_file(place.staged("a", "two")).value();
  CHECK(read_text(place.files + "/a") == "two");
}

TEST_CASE("other content than was seen is not published") {
  Place place;
  auto publication = place.staged("a", "one");
  place.staged("a", "other");
  CHECK(publish_file(publication).value() == Outcome::kChanged);
  fs::remove(place.staging + "/a");
  CHECK(publish_file(publication).value() == Outcome::kGone);
  CHECK_FALSE(fs::exists(place.files + "/a"));
}

TEST_CASE("a file that is being written is not published") {
  Place place;
  auto publication = place.staged("a", "one");
  if (learn_refusal(HeldFolder::open(place.folder.path()).value()) == Refusal::kMeansNothing)
    SKIP_TEST("this file system has no leases");
  Fd writer(::open((place.staging + "/a").c_str(), O_WRONLY));
  CHECK(publish_file(publication).value() == Outcome::kBusy);
  CHECK_FALSE(fs::exists(place.files + "/a"));
}

TEST_CASE("where a refused lease means nothing, a file that stays the same is published") {
  Place place;
  auto publication = place.staged("a", "one");
  publication.refusal = Refusal::kMeansNothing;
  without_leases([&] { CHECK(publish_file(publication).value() == Outcome::kPublished); });
  CHECK(read_text(place.files + "/a") == "one");
}

TEST_CASE("a publisher that is killed before a file has its final name leaves nothing") {
  Place place;
  fs::create_directories(place.files);
  if (!Fd(::open(place.files.c_str(), O_TMPFILE | O_WRONLY, 0600)))
    SKIP_TEST("this file system has no files without a name");
  auto publication = place.staged("model.pt", "text");
  int child = ::fork();
  if (child == 0) {
    answer_calls(SYS_fsync, {}, SECCOMP_RET_KILL_PROCESS);
    static_cast<void>(publish_file(publication));
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(entries(place.files) == 0);
}

TEST_CASE("links are published as links, and lead to published files") {
  Place place;
  place.staged("step5.pt", "five");
  for (const auto& [name, target] :
       {std::pair{"relative", std::string("step5.pt")}, std::pair{"absolute", place.staging + "/step5.pt"},
        std::pair{"out", std::string("/etc")}}) {
    fs::create_symlink(target, place.staging + "/" + name);
    auto from = HeldFolder::open(place.staging).value();
    Publication publication{from, HeldFolder::open(place.files).value(), name, link_state(from, name).value(), true};
    REQUIRE(publish_file(publication).value() == Outcome::kPublished);
  }
  CHECK(fs::read_symlink(place.files + "/relative") == "step5.pt");
  CHECK(fs::read_symlink(place.files + "/absolute") == place.files + "/step5.pt");
  CHECK(fs::read_symlink(place.files + "/out") == "/etc");
}

TEST_CASE("a full disk is named, and leaves the former file whole and no part behind") {
  Place place;
  SmallDisk disk("size=1m");
  if (!disk.mounted()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  place.files = disk.path() + "/files";
  publish_file(place.staged("model.pt", "former")).value();
  auto failed = publish_file(place.staged("model.pt", std::string(2'000'000, 'm')));
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().system_errno == ENOSPC);
  CHECK_THAT(failed.error().message, ContainsSubstring(place.files + "/model.pt"));
  CHECK(read_text(place.files + "/model.pt") == "former");
  CHECK(entries(place.files) == 1);
}

TEST_CASE("at the end a file is moved where it can be, which needs no room on the disk") {
  Place place;
  SmallDisk disk("size=1m");
  if (!disk.mounted()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  place.staging = disk.path() + "/staging";
  place.files = disk.path() + "/files";
  const std::string text(700'000, 'm');
  auto publication = place.staged("sub/model.pt", text);
  CHECK_FALSE(publish_file(publication).has_value());
  publication.at_end = true;
  REQUIRE(publish_file(publication).value() == Outcome::kPublished);
  CHECK(read_text(place.files + "/sub/model.pt") == text);
  CHECK(entries(place.files + "/sub") == 1);
  CHECK(entries(place.staging + "/sub") == 0);
}

TEST_CASE("at the end a file with another name, or one that may be written to, is copied or left alone") {
  Place place;
  auto publication = place.staged("model.pt", "content");
  SECTION("a hard link would lead into the published file") {
    fs::create_hard_link(place.staging + "/model.pt", place.folder / "link");
    publication = place.seen("model.pt");
    publication.at_end = true;
    REQUIRE(publish_file(publication).value() == Outcome::kPublished);
    write_text(place.folder / "link", "other");
    CHECK(read_text(place.files + "/model.pt") == "content");
    CHECK(fs::exists(place.staging + "/model.pt"));
  }
  SECTION("on a file system that does not tell of writers") {
    publication.at_end = true;
    publication.refusal = Refusal::kMeansNothing;
    without_leases([&] { CHECK(publish_file(publication).value() == Outcome::kPublished); });
    CHECK(fs::exists(place.staging + "/model.pt"));
  }
  SECTION("a writer") {
    Fd writer(::open((place.staging + "/model.pt").c_str(), O_WRONLY | O_CLOEXEC));
    publication.at_end = true;
    CHECK(publish_file(publication).value() == Outcome::kBusy);
    CHECK(fs::exists(place.staging + "/model.pt"));
  }
  SECTION("another file system") {
    SmallDisk disk("size=1m");
    if (!disk.mounted()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
    place.files = disk.path() + "/files";
    publication = place.seen("model.pt");
    publication.at_end = true;
    REQUIRE(publish_file(publication).value() == Outcome::kPublished);
    CHECK(read_text(place.files + "/model.pt") == "content");
    CHECK(fs::exists(place.staging + "/model.pt"));
  }
}

TEST_CASE("a read-only disk is named") {
  Place place;
  SmallDisk disk("size=1m");
  if (!disk.mounted() || !disk.make_read_only()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  place.files = disk.path();
  auto failed = publish_file(place.staged("model.pt", "text"));
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().system_errno == EROFS);
  CHECK_THAT(failed.error().message, ContainsSubstring(disk.path() + "/model.pt"));
}

TEST_CASE("the place itself can be made to last") {
  Place place;
  fs::create_directories(place.files);
  CHECK(flush_place(HeldFolder::open(place.files).value()).has_value());
  CHECK_FALSE(flush_place(HeldFolder()).has_value());
}

TEST_CASE("a published file is known again by its size and time, whoever published it") {
  Place place;
  auto publication = place.staged("sub/model.pt", "one");
  CHECK_FALSE(is_published(publication.files, publication.name, publication.seen));
  REQUIRE(publish_file(publication).value() == Outcome::kPublished);
  CHECK(is_published(publication.files, publication.name, publication.seen));
  publication = place.staged("sub/model.pt", "longer");
  CHECK_FALSE(is_published(publication.files, publication.name, publication.seen));
}

TEST_CASE("links in the place of folders are refused, on either side") {
  Place place;
  TemporaryFolder victim;
  write_text(victim / "precious", "text");
  auto publication = place.staged("sub/precious", "mine");
  SECTION("where files are published") {
    fs::create_directory_symlink(victim.path(), place.files + "/sub");
    const auto refused = publish_file(publication);
    REQUIRE_FALSE(refused.has_value());
    CHECK_THAT(refused.error().message, ContainsSubstring("sub"));
  }
  SECTION("where they are staged") {
    fs::remove_all(place.staging + "/sub");
    fs::create_directory_symlink(victim.path(), place.staging + "/sub");
    publication.at_end = true;
    const auto refused = publish_file(publication);
    REQUIRE_FALSE(refused.has_value());
    CHECK_THAT(refused.error().message, ContainsSubstring("symbolic link to " + victim.path()));
    CHECK_FALSE(fs::exists(place.files + "/sub/precious"));
  }
  CHECK(read_text(victim / "precious") == "text");
}

}  // namespace publish_file_test
