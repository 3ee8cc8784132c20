#include "store/waiting_clients.hpp"

#include "catch.hpp"

namespace waiting_clients_test {

using namespace taas::store;

namespace {

constexpr ClientId kA{0};
constexpr ClientId kB{1};

WaitingClients make_waiting(std::size_t bytes = 1'000'000) { return WaitingClients(std::make_shared<Budget>(bytes)); }

}  // namespace

TEST_CASE("a wait is over when all of its keys have come, and the oldest is released first") {
  auto waiting = make_waiting();
  REQUIRE(waiting.begin(kB, {"x", "y", "x"}));
  REQUIRE(waiting.begin(kA, {"x"}));
  CHECK(waiting.key_came("z").empty());
  CHECK(waiting.key_came("x") == std::vector{kA});
  CHECK(waiting.key_came("x").empty());
  CHECK(waiting.key_came("y") == std::vector{kB});
  REQUIRE(waiting.begin(kB, {"x"}));
  REQUIRE(waiting.begin(kA, {"x"}));
  CHECK(waiting.key_came("x") == std::vector{kB, kA});
}

TEST_CASE("a key that comes for one client releases the one that has waited longest") {
  auto waiting = make_waiting();
  CHECK_FALSE(waiting.key_came_for_one("x"));
  REQUIRE(waiting.begin(kB, {"x"}));
  REQUIRE(waiting.begin(kA, {"x"}));
  CHECK(waiting.key_came_for_one("x") == kB);
  CHECK(waiting.key_came_for_one("x") == kA);
  CHECK_FALSE(waiting.key_came_for_one("x"));
}

TEST_CASE("who has gone, or waits for something else now, is not released") {
  auto waiting = make_waiting();
  REQUIRE(waiting.begin(kA, {"x"}));
  REQUIRE(waiting.begin(kA, {"y"}));
  REQUIRE(waiting.begin(kB, {"x"}));
  waiting.drop(kB);
  waiting.drop(kB);
  CHECK(waiting.key_came("x").empty());
  CHECK(waiting.key_came("y") == std::vector{kA});
}

TEST_CASE("a wait for which there is no room is refused, and one that ends makes room") {
  auto waiting = make_waiting(200);
  REQUIRE(waiting.begin(kA, {"x"}));
  CHECK_FALSE(waiting.begin(kB, {"x"}));
  CHECK(waiting.key_came("x") == std::vector{kA});
  CHECK(waiting.begin(kB, {"x"}));
}

}  // namespace waiting_clients_test
