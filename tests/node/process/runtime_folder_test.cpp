#include "node/process/runtime_folder.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "catch.hpp"

namespace runtime_folder_test {

using namespace taas;
using namespace taas::node;
namespace fs = std::filesystem;

namespace {

/// A /tmp of this test's own.
struct Parent {
  std::string path = "/tmp/taas-parent-XXXXXX";
  Parent() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Parent() { fs::remove_all(path); }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  [[nodiscard]] std::string name(const std::string& suffix = {}) const {
    return path + "/taas-of-" + std::to_string(::geteuid()) + suffix;
  }
};

mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

}  // namespace

TEST_CASE("all launchers of a user get the same folder, which nobody else may enter") {
  Parent parent;
  const auto first = runtime_folder({}, parent.path);
  REQUIRE(first.has_value());
  CHECK(*first == parent.name());
  CHECK(mode_of(*first) == 0700);
  CHECK(runtime_folder({}, parent.path).value() == *first);
}

TEST_CASE("locks of runs that ended long ago are removed, those that somebody holds or has just wanted stay") {
  Parent parent;
  const auto folder = runtime_folder({}, parent.path);
  REQUIRE(folder.has_value());
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(100);
  for (auto* name : {"left", "held", "young", "wanted"}) REQUIRE(open_lock(*folder + "/" + name).has_value());
  const auto held = open_lock(*folder + "/held");
  REQUIRE(::flock(held->get(), LOCK_EX | LOCK_NB) == 0);
  for (auto* name : {"left", "held", "wanted"}) fs::last_write_time(*folder + "/" + name, long_ago);
  REQUIRE(open_lock(*folder + "/wanted").has_value());
  fs::create_directory(*folder + "/run-of-somebody");
  fs::last_write_time(*folder + "/run-of-somebody", long_ago);
  REQUIRE(runtime_folder({}, parent.path).has_value());
  CHECK_FALSE(fs::exists(*folder + "/left"));
  for (auto* name : {"held", "young", "wanted", "run-of-somebody"}) CHECK(fs::exists(*folder + "/" + name));
}

TEST_CASE("a name that others have taken is passed over") {
  Parent parent;
  ::umask(022);
  fs::create_directory(parent.name());            // others may enter it
  fs::create_symlink("/tmp", parent.name(".1"));  // leads elsewhere
  fs::create_directory_symlink(parent.path, parent.name(".2"));
  if (::geteuid() == 0) {
    fs::create_directory(parent.name(".3"));
    fs::permissions(parent.name(".3"), fs::perms::owner_all);
    REQUIRE(::chown(parent.name(".3").c_str(), 65534, 65534) == 0);
  }
  const auto chosen = runtime_folder({}, parent.path);
  REQUIRE(chosen.has_value());
  CHECK(*chosen == parent.name(::geteuid() == 0 ? ".4" : ".3"));
  fs::remove(parent.name());  // the name is free again, and the others are not left alone
  CHECK(runtime_folder({}, parent.path).value() == *chosen);
}

TEST_CASE("where all names are taken, that is said with the way out") {
  Parent parent;
  ::umask(022);
  fs::create_directory(parent.name());
  for (int i = 1; i < 16; ++i) fs::create_directory(parent.name("." + std::to_string(i)));
  const auto refused = runtime_folder({}, parent.path);
  REQUIRE(refused.has_error());
  CHECK_THAT(refused.error().message, ContainsSubstring(parent.name()) && ContainsSubstring("XDG_RUNTIME_DIR"));
}

TEST_CASE("the session's own folder comes first, if it is one") {
  Parent parent;
  Parent session;
  CHECK(runtime_folder({{"XDG_RUNTIME_DIR", session.path}}, parent.path).value() == session.path + "/taas-run");
  fs::permissions(session.path, fs::perms::others_read, fs::perm_options::add);
  CHECK(runtime_folder({{"XDG_RUNTIME_DIR", session.path}}, parent.path).value() == parent.name());
  CHECK(runtime_folder({{"XDG_RUNTIME_DIR", "/no/such/folder"}}, parent.path).value() == parent.name());
}

TEST_CASE("where nothing can be made in the usual place, it is made in TMPDIR") {
  Parent other;
  CHECK(runtime_folder({{"TMPDIR", other.path}}, "/proc").value() == other.name());
}

TEST_CASE("a lock is held by one at a time") {
  Parent parent;
  const auto path = parent.path + "/lock";
  const auto first = open_lock(path);
  const auto second = open_lock(path);
  REQUIRE(first.has_value());
  REQUIRE(second.has_value());
  CHECK(::flock(first->get(), LOCK_EX | LOCK_NB) == 0);
  CHECK(::flock(second->get(), LOCK_EX | LOCK_NB) != 0);
  CHECK(open_lock("/no/such/folder/lock").error().system_errno == ENOENT);
}

TEST_CASE("a lock is a file of its own") {
  const Parent parent;
  const auto victim = parent.path + "/victim", lock = parent.path + "/lock";
  REQUIRE(Fd(::open(victim.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
  SECTION("and no second name of another") { REQUIRE(::link(victim.c_str(), lock.c_str()) == 0); }
  SECTION("and no link") { REQUIRE(::symlink(victim.c_str(), lock.c_str()) == 0); }
  SECTION("and no pipe") { REQUIRE(::mkfifo(lock.c_str(), 0600) == 0); }
  CHECK_THAT(open_lock(lock).error().message, ContainsSubstring(lock));
}

}  // namespace runtime_folder_test
