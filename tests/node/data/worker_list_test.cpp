#include "node/data/worker_list.hpp"

#include <stdlib.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>

#include "catch.hpp"

namespace worker_list_test {

using namespace taas;
using node::WorkerList;

namespace {

struct Fixture {
  Fixture() {
    std::string pattern = std::filesystem::temp_directory_path() / "taas-list-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  ~Fixture() { std::filesystem::remove_all(folder); }

  boost::asio::io_context io;
  std::filesystem::path folder;
};

run::DataWorker worker(std::string name, std::string node, std::uint16_t port) {
  run::DataWorker made;
  made.name = std::move(name);
  made.node = std::move(node);
  made.port = port;
  made.addresses = {"10.0.0.9"};
  return made;
}

std::string address_of(const std::string& node) { return node == "b" ? "10.0.0.2" : ""; }

}  // namespace

TEST_CASE("workers of simulated machines have their places and names at once") {
  Fixture fixture;
  WorkerList list({4, 2, "", "127.0.0.1"});
  REQUIRE(list.open(fixture.io, fixture.folder).has_value());
  CHECK(list.places() == std::vector<int>{0, 1, 2, 3});
  CHECK(list.name_of(1) == "data worker 1 (CPU machine 0)");
  CHECK(list.name_of(2) == "data worker 2 (CPU machine 1)");
  const auto entries = list.entries(address_of);
  REQUIRE(entries.size() == 4);
  CHECK(entries[3].name == "data worker 3 (CPU machine 1)");
  CHECK(entries[3].address == "127.0.0.1");
  CHECK(entries[3].port == list.listeners()[3].port);
  CHECK(entries[3].unix_path == list.listeners()[3].unix_path);
}

TEST_CASE("a node finds its workers in the coordinator's list, and reaches them by its own sockets") {
  Fixture fixture;
  WorkerList list({2, 0, "a", "127.0.0.1"});
  REQUIRE(list.open(fixture.io, fixture.folder).has_value());
  CHECK(list.places().empty());
  list.use({{worker("zero", "b", 71), worker("one", "a", 72), worker("two", "c", 73), worker("three", "a", 74)}});
  CHECK(list.places() == std::vector<int>{1, 3});
  CHECK(list.name_of(1) == "three");
  const auto entries = list.entries(address_of);
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].address == "10.0.0.2");
  CHECK(entries[0].port == 71);
  CHECK(entries[0].unix_path.empty());
  CHECK(entries[2].address.empty());  // no address of c has answered
  CHECK(entries[2].port == 0);
  CHECK(entries[3].address == "10.0.0.9");
  CHECK(entries[3].port == list.listeners()[1].port);
  CHECK(entries[3].unix_path == list.listeners()[1].unix_path);
}

TEST_CASE("places stay as they were found first, also when there are more workers of this machine in the list") {
  Fixture fixture;
  WorkerList list({1, 0, "a", "127.0.0.1"});
  REQUIRE(list.open(fixture.io, fixture.folder).has_value());
  list.use({{worker("zero", "a", 71)}});
  list.use({{worker("zero", "a", 71), worker("one", "a", 72)}});
  CHECK(list.places() == std::vector<int>{0});
  const auto entries = list.entries(address_of);
  REQUIRE(entries.size() == 2);
  CHECK(entries[1].name == "one");
  CHECK(entries[1].port == 0);  // nobody listens for it here
}

}  // namespace worker_list_test
