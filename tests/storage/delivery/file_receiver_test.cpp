#include "storage/delivery/file_receiver.hpp"

#include <map>

#include "catch.hpp"
#include "held_path.hpp"
#include "run_until.hpp"
#include "storage/temporary_folder.hpp"

namespace file_receiver_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

/// A receiver, and what it has answered to each source.
struct Intake {
  TemporaryFolder folder;
  boost::asio::io_context io;
  std::map<int, std::vector<std::uint64_t>> progress;
  std::map<int, std::vector<std::string>> stored;
  FileReceiver receiver{io, options()};

  FileReceiverOptions options() {
    FileReceiverOptions made;
    made.files = held_path(folder.path());
    made.on_progress = [this](int source, std::uint64_t, std::uint64_t bytes) { progress[source].push_back(bytes); };
    made.on_stored = [this](int source, std::uint64_t, const std::string& error) { stored[source].push_back(error); };
    return made;
  }
  bool offer(int source, std::uint64_t transfer, const std::string& name, std::uint64_t size) {
    return receiver.offer(source, transfer, held_path(folder.path()), {name, "", 0644, size});
  }
  bool accepts(int source) {
    return run_until(io, [&] { return !progress[source].empty(); });
  }
};

}  // namespace

TEST_CASE("a file comes piece by piece, each told when it is written") {
  Intake intake;
  REQUIRE(intake.offer(1, 7, "a", 6));
  REQUIRE(intake.accepts(1));
  CHECK(intake.progress[1] == std::vector<std::uint64_t>{0});
  REQUIRE(intake.receiver.add(1, 7, "abc"));
  REQUIRE(run_until(intake.io, [&] { return intake.progress[1].size() == 2; }));
  CHECK(intake.progress[1].back() == 3);
  REQUIRE(intake.receiver.add(1, 7, "def"));
  REQUIRE(run_until(intake.io, [&] { return !intake.stored[1].empty(); }));
  CHECK(intake.stored[1] == std::vector<std::string>{""});
  CHECK(read_text(intake.folder / "a") == "abcdef");
}

TEST_CASE("an empty file needs no piece") {
  Intake intake;
  REQUIRE(intake.offer(1, 1, "a", 0));
  REQUIRE(run_until(intake.io, [&] { return !intake.stored[1].empty(); }));
  CHECK(fs::exists(intake.folder / "a"));
}

TEST_CASE("who keeps no rules is told from who does") {
  Intake intake;
  REQUIRE(intake.offer(1, 1, "a", 100 << 20));
  CHECK_FALSE(intake.offer(1, 2, "b", 1));     // a second one at once
  CHECK_FALSE(intake.receiver.add(1, 1, ""));  // nothing
  REQUIRE(intake.accepts(1));
  CHECK(intake.receiver.add(1, 99, "late"));  // of a file that failed meanwhile: ignored
  CHECK(intake.receiver.add(2, 1, "late"));
  REQUIRE(intake.receiver.add(1, 1, std::string(1 << 20, 'x')));
  CHECK_FALSE(intake.receiver.add(1, 1, std::string(1, 'x')));  // more than it was told to send
}

TEST_CASE("few files come at once, and the next when one is done") {
  Intake intake;
  constexpr int kSources = 20;
  for (int source = 0; source < kSources; ++source) REQUIRE(intake.offer(source, 1, "f" + std::to_string(source), 1));
  for (int source = 0; source < kSources; ++source) {
    REQUIRE(intake.accepts(source));
    CHECK(intake.progress.count(source + 10) == 0);
    REQUIRE(intake.receiver.add(source, 1, "x"));
    REQUIRE(run_until(intake.io, [&] { return !intake.stored[source].empty(); }));
  }
  CHECK(fs::exists(intake.folder / "f19"));
}

TEST_CASE("a piece that nobody waits for yet breaks the rules") {
  Intake intake;
  for (int source = 0; source < 9; ++source) REQUIRE(intake.offer(source, 1, "f" + std::to_string(source), 1));
  CHECK_FALSE(intake.receiver.add(8, 1, "x"));
}

TEST_CASE("a source that goes leaves nothing, and its place to the next") {
  Intake intake;
  for (int source = 0; source < 9; ++source) REQUIRE(intake.offer(source, 1, "f" + std::to_string(source), 4));
  REQUIRE(intake.accepts(0));
  REQUIRE(intake.receiver.add(0, 1, "ab"));
  CHECK(intake.receiver.forget(0) == "f0");
  CHECK(intake.receiver.forget(0) == std::nullopt);
  REQUIRE(intake.accepts(8));
  for (int source = 1; source < 9; ++source) CHECK(intake.receiver.forget(source).has_value());
  intake.io.restart();
  intake.io.run();
  CHECK(fs::is_empty(intake.folder.path()));
  CHECK(intake.stored.empty());
}

TEST_CASE("a file that is cancelled makes room for the next of its source") {
  Intake intake;
  REQUIRE(intake.offer(1, 1, "a", 4));
  REQUIRE(intake.accepts(1));
  intake.receiver.cancel(1, 2);
  CHECK_FALSE(intake.offer(1, 2, "b", 0));
  intake.receiver.cancel(1, 1);
  REQUIRE(intake.offer(1, 2, "b", 0));
  REQUIRE(run_until(intake.io, [&] { return !intake.stored[1].empty(); }));
  CHECK_FALSE(fs::exists(intake.folder / "a"));
}

TEST_CASE("a name that leads out is refused, and what comes for it ignored") {
  Intake intake;
  REQUIRE(intake.offer(1, 1, "../x", 4));
  CHECK(intake.receiver.add(1, 1, "abcd"));
  REQUIRE(run_until(intake.io, [&] { return !intake.stored[1].empty(); }));
  CHECK_THAT(intake.stored[1].front(), ContainsSubstring("../x"));
  CHECK(intake.receiver.add(1, 1, "abcd"));
  CHECK_FALSE(fs::exists(intake.folder / "../x"));
}

TEST_CASE("files get their names after all that came before") {
  Intake intake;
  const HeldPath delivered{HeldFolder::open(intake.folder.path()).value(), ".delivered/1"};
  REQUIRE(intake.receiver.offer(1, 1, delivered, {"a", "", 0644, 1}));
  REQUIRE(intake.accepts(1));
  REQUIRE(intake.receiver.add(1, 1, "x"));
  std::optional<Placed> placed;
  intake.receiver.place({{delivered, "node_1", "host1"}}, [&](Placed result) { placed = std::move(result); });
  REQUIRE(run_until(intake.io, [&] { return placed.has_value(); }));
  CHECK(placed->files == 1);
  CHECK(read_text(intake.folder / "a") == "x");
}

TEST_CASE("a folder that was replaced by a link receives nothing") {
  Intake intake;
  TemporaryFolder victim;
  fs::create_directory_symlink(victim.path(), intake.folder / "output");
  const HeldPath output{HeldFolder::open(intake.folder.path()).value(), "output"};
  REQUIRE(intake.receiver.offer(1, 1, output, {"a", "", 0644, 0}));
  REQUIRE(run_until(intake.io, [&] { return !intake.stored[1].empty(); }));
  CHECK_THAT(intake.stored[1].front(), ContainsSubstring("output is a symbolic link to " + victim.path()));
  CHECK(fs::is_empty(victim.path()));
}

}  // namespace file_receiver_test
