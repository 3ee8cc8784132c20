// Clients that wait for keys, for values of a queue, or for each other.
#include <algorithm>

#include "catch.hpp"
#include "collected_replies.hpp"
#include "store/wire.hpp"

namespace database_waits_test {

using namespace taas;
using namespace taas::store;
using collected_replies::kA;
using collected_replies::kB;
using collected_replies::kC;
using collected_replies::kOne;
using collected_replies::kZero;
using collected_replies::Store;

TEST_CASE("a compare-set that fails brings no key") {
  Store store;
  store.ask(kA, Wait{{"k"}});
  store.ask(kB, CompareSet{"k", "expected", "desired"});
  CHECK(store.take(kA).empty());
}

TEST_CASE("a wait ends when its last key has come, whatever brings it") {
  Store store;
  const std::vector<Request> bringers = {Set{"last", "1"},
                                         Add{"last", 1},
                                         CompareSet{"last", "", "1"},
                                         Append{"last", "1"},
                                         MultiSet{{{"other", ""}, {"last", "1"}}},
                                         QueuePush{"last", "1"}};
  for (const auto& bringer : bringers) {
    Store fresh;
    CHECK(fresh.answer(kA, Wait{{"first", "last"}}).empty());
    fresh.ask(kB, Set{"first", "1"});
    CHECK(fresh.take(kA).empty());
    fresh.ask(kB, bringer);
    CHECK(fresh.take(kA) == kZero);
    CHECK(fresh.answer(kA, Wait{{"first", "last"}}) == kZero);
    CHECK(fresh.answer(kA, Check{{"first", "last"}}) == kZero);
  }
  CHECK(store.answer(kA, Wait{}) == kZero);
  CHECK(store.answer(kA, Check{}) == kZero);
}

TEST_CASE("a key that is waited for twice, or deleted after it came, counts once and for good") {
  Store store;
  store.ask(kA, Wait{{"k", "k"}});
  store.ask(kB, Set{"k", "1"});
  CHECK(store.take(kA) == kZero);

  store.ask(kA, Wait{{"x", "y"}});
  store.ask(kB, Set{"x", "1"});
  store.ask(kB, Delete{"x"});
  store.ask(kB, Set{"x", "1"});
  CHECK(store.take(kA).empty());
  store.ask(kB, Set{"y", "1"});
  CHECK(store.take(kA) == kZero);
}

TEST_CASE("a request answers itself after those it releases") {
  Store store;
  store.ask(kA, Wait{{"n"}});
  store.ask(kB, Wait{{"n"}});
  const auto replies = store.database.apply(kC, Add{"n", 1});
  REQUIRE(replies.has_value());
  std::vector<int> order;
  for (const auto& reply : *replies) order.push_back(reply.client.value);
  CHECK(order == std::vector<int>{0, 1, 2});
}

TEST_CASE("a cancelled wait, a replaced one and one of a lost client are forgotten") {
  Store store;
  CHECK(store.answer(kA, CancelWait{}) == kOne);
  store.ask(kA, Wait{{"k"}});
  CHECK(store.answer(kA, CancelWait{}) == kOne);
  store.ask(kB, Wait{{"k"}});
  store.ask(kB, Wait{{"l"}});
  store.ask(kC, Wait{{"k", "m"}});
  store.database.drop(kC);
  store.ask(kA, MultiSet{{{"k", "1"}, {"m", "1"}}});
  CHECK(store.inbox[kA.value].empty());
  CHECK(store.inbox[kB.value].empty());
  CHECK(store.inbox[kC.value].empty());
  store.ask(kA, Set{"l", "1"});
  CHECK(store.take(kB) == kZero);
}

TEST_CASE("a pushed value wakes the client that has waited longest, and no other") {
  Store store;
  for (const auto client : {kA, kB, kC}) store.ask(client, Wait{{"q"}});
  store.database.drop(kA);
  store.ask(kA, QueuePush{"q", "1"});
  CHECK(store.take(kB) == kZero);
  CHECK(store.take(kC).empty());
  store.ask(kA, QueuePush{"q", "2"});
  CHECK(store.take(kC) == kZero);
}

TEST_CASE("a queue among the keys of a wait counts once, and counts when it holds values already") {
  Store store;
  store.ask(kA, Wait{{"q", "r"}});
  store.ask(kB, QueuePush{"q", "1"});
  store.ask(kB, QueuePush{"q", "2"});
  CHECK(store.take(kA).empty());
  store.ask(kB, QueuePush{"r", "1"});
  CHECK(store.take(kA) == kZero);
  store.ask(kA, Wait{{"q", "k"}});
  store.ask(kB, Set{"k", "1"});
  CHECK(store.take(kA) == kZero);
}

TEST_CASE("a barrier opens when all have come and stays open") {
  Store store;
  CHECK(store.answer(kA, Barrier{"b", 3}).empty());
  CHECK(store.answer(kB, Barrier{"b", 3}).empty());
  CHECK(store.answer(kA, Get{"b"}) == wire::blob("2"));
  store.ask(kC, Barrier{"b", 3});
  CHECK(store.take(kA) == kZero);
  CHECK(store.take(kB) == kZero);
  CHECK(store.take(kC) == kZero);
  CHECK(store.answer(kA, Barrier{"b", 3}) == kZero);
  CHECK(store.answer(kA, Barrier{"alone", 1}) == kZero);
  CHECK(store.answer(kA, Barrier{"none", 0}) == kZero);
  CHECK(store.answer(kA, Barrier{"negative", -1}) == kZero);
}

TEST_CASE("one who gave a barrier up has still come") {
  Store store;
  store.ask(kA, Barrier{"b", 2});
  CHECK(store.answer(kA, CancelWait{}) == kOne);
  CHECK(store.answer(kB, Barrier{"b", 2}) == kZero);
  CHECK(store.take(kA).empty());
}

TEST_CASE("one set releases thousands who wait for it among other keys") {
  constexpr int kClients = 5000;
  Store store;
  for (int i = 0; i < kClients; ++i) store.ask(ClientId{i}, Wait{{"all", "own" + std::to_string(i)}});
  store.ask(ClientId{kClients}, Set{"all", "1"});
  CHECK(std::ranges::all_of(store.inbox, [](const auto& entry) { return entry.second.empty(); }));
  for (int i = 0; i < kClients; ++i) store.ask(ClientId{kClients}, Set{"own" + std::to_string(i), "1"});
  int released = 0;
  for (int i = 0; i < kClients; ++i) released += store.take(ClientId{i}) == kZero;
  CHECK(released == kClients);
}

}  // namespace database_waits_test
