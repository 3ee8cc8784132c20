#include "node/ranks/node_ranks.hpp"

#include <stdlib.h>

#include <boost/asio/io_context.hpp>
#include <csignal>
#include <filesystem>
#include <optional>

#include "base/disk_thread.hpp"
#include "catch.hpp"
#include "proc/family/family.hpp"

namespace node_ranks_test {

using namespace taas;
using namespace taas::node;

namespace {

/// A node's ranks with the parts around them, and what they told the coordinator.
struct Fixture {
  explicit Fixture(std::vector<std::string> command) {
    std::string pattern = std::filesystem::temp_directory_path() / "taas-ranks-XXXXXX";
    root = ::mkdtemp(pattern.data());
    folder = storage::create_run_directory({.output = root, .run_id = "run"}).value();
    options.starts.command = std::move(command);
    options.starts.machine.environment = {{"PATH", "/usr/bin:/bin"}};
  }
  explicit Fixture(const std::string& script) : Fixture(std::vector<std::string>{"/bin/sh", "-c", script}) {}
  ~Fixture() { std::filesystem::remove_all(root); }

  void start(int ranks, Generation generation = Generation{0}) {
    if (!here) here.emplace(io, family, disk, outbox, *folder, std::move(options));
    here->start(generation, {}, place_ranks(share_ranks(std::vector<int>{ranks})));
  }
  template <class Message>
  [[nodiscard]] std::vector<Message> told() const {
    std::vector<Message> found;
    for (const auto& message : messages) {
      if (const auto* one = std::get_if<Message>(&message)) found.push_back(*one);
    }
    return found;
  }
  template <class Message>
  void wait_for(std::size_t count) {
    while (told<Message>().size() < count) io.run_one();
  }
  /// What the disk thread has been given is done, and the loop has heard of it.
  void settle() {
    bool settled = false;
    disk.after([&] { settled = true; });
    while (!settled) io.run_one();
  }

  boost::asio::io_context io;
  DiskThread disk{io};
  Family family{io};
  std::vector<run::AgentMessage> messages;
  Outbox outbox{io, {true, [this](run::AgentMessage message) { messages.push_back(std::move(message)); }}};
  std::filesystem::path root;
  std::optional<storage::RunDirectory> folder;
  NodeRanksOptions options;
  std::optional<NodeRanks> here;
};

}  // namespace

TEST_CASE("each rank is told of when it is there, and when it has ended") {
  Fixture fixture("exit $((LOCAL_RANK + 3))");
  fixture.options.on_end = [](Rank rank, run::Evidence& evidence) {
    evidence.expired_timer = "of rank " + std::to_string(rank.value);
  };
  fixture.start(2);
  fixture.wait_for<run::RankExited>(2);
  CHECK(fixture.told<run::RankSpawned>().size() == 2);
  CHECK(fixture.here->writers().look(steady_now()) == storage::WritersState::kBadly);
  for (const auto& end : fixture.told<run::RankExited>()) {
    CHECK(end.status.code == end.rank.value + 3);
    CHECK(end.evidence.expired_timer == "of rank " + std::to_string(end.rank.value));
  }
}

TEST_CASE("a start that is taken back leaves no rank") {
  Fixture fixture("exit 0");
  SECTION("before the folders are made") {
    fixture.start(2);
    fixture.here->cancel_start();
  }
  SECTION("by whoever is asked last") {
    fixture.options.before_start = [&fixture] { fixture.here->cancel_start(); };
    fixture.start(2);
  }
  fixture.settle();
  CHECK(fixture.messages.empty());
  CHECK(fixture.here->writers().look(steady_now()) == storage::WritersState::kWell);  // there was none to die
}

TEST_CASE("a program that is not there is said of the first rank, and no other is tried") {
  Fixture fixture(std::vector<std::string>{"/no/such/program"});
  fixture.start(3);
  fixture.wait_for<run::RankSpawnFailed>(1);
  fixture.settle();
  REQUIRE(fixture.told<run::RankSpawnFailed>().size() == 1);
  CHECK(fixture.told<run::RankSpawnFailed>()[0].rank == Rank{0});
  CHECK(fixture.told<run::RankSpawned>().empty());
}

TEST_CASE("signals reach ranks of their own generation only, and a process is known by its rank") {
  Fixture fixture("echo ready; exec tail -f /dev/null");
  fixture.start(1, Generation{2});
  fixture.wait_for<run::Output>(1);
  const auto pid = fixture.told<run::RankSpawned>().at(0).pid;
  CHECK(fixture.here->rank_of(pid) == Rank{0});
  CHECK(fixture.here->rank_of(1) == std::nullopt);
  CHECK(fixture.here->writers().look(steady_now()) == storage::WritersState::kWell);
  fixture.here->signal({Generation{1}, {Rank{0}}, SIGKILL});
  fixture.here->signal({Generation{2}, {Rank{1}}, SIGKILL});
  fixture.here->signal({Generation{2}, {Rank{0}}, SIGUSR1});
  fixture.wait_for<run::RankExited>(1);
  CHECK(fixture.told<run::RankExited>()[0].status.signal == SIGUSR1);
}

TEST_CASE("what ranks print while their output is held comes when they are read from again") {
  Fixture fixture("echo one; echo two");
  fixture.start(1);
  fixture.here->hold_output(true);
  fixture.wait_for<run::RankSpawned>(1);
  fixture.here->hold_output(false);
  fixture.wait_for<run::RankExited>(1);
  std::size_t lines = 0;
  for (const auto& output : fixture.told<run::Output>()) lines += output.lines.size();
  CHECK(lines == 2);
}

}  // namespace node_ranks_test
