#include "store/database.hpp"

#include <map>

#include "catch.hpp"
#include "store/parser.hpp"
#include "store/wire.hpp"

namespace database_test {

using namespace taas;
using namespace taas::store;

namespace {

constexpr ClientId kA{0};
constexpr ClientId kB{1};
constexpr ClientId kC{2};

const std::string kZero(1, '\0');
const std::string kOne(1, '\1');

/// A database whose replies are collected by client.
struct Store {
  Database database;
  std::map<int, std::string> inbox;

  void ask(ClientId client, Request request) {
    auto replies = database.apply(client, std::move(request));
    REQUIRE(replies.has_value());
    for (const auto& reply : *replies) inbox[reply.client.value] += wire::text_of(reply.pieces);
  }
  /// What has come for the client since the last time.
  std::string take(ClientId client) { return std::exchange(inbox[client.value], {}); }
  std::string answer(ClientId client, Request request) {
    ask(client, std::move(request));
    return take(client);
  }
};

}  // namespace

TEST_CASE("values are set, read, appended to and deleted") {
  Store store;
  CHECK(store.answer(kA, Get{"k"}) == wire::blob(""));
  CHECK(store.answer(kA, Set{"k", "v"}).empty());
  CHECK(store.answer(kB, Get{"k"}) == wire::blob("v"));
  CHECK(store.answer(kA, Append{"k", "w"}).empty());
  CHECK(store.answer(kA, Append{"new", "n"}).empty());
  CHECK(store.answer(kA, MultiGet{{"k", "none", "new"}}) == wire::blob("vw") + wire::blob("") + wire::blob("n"));
  CHECK(store.answer(kA, CountKeys{}) == wire::number(2));
  CHECK(store.answer(kA, Delete{"k"}) == wire::number(1));
  CHECK(store.answer(kA, Delete{"k"}) == wire::number(0));
  CHECK(store.answer(kA, ListKeys{}) == wire::number(1) + wire::blob("new"));
  CHECK(store.answer(kA, MultiSet{{{"x", "1"}, {"y", "2"}}}).empty());
  CHECK(store.answer(kA, MultiGet{{"x", "y"}}) == wire::blob("1") + wire::blob("2"));
  CHECK(store.answer(kA, Ping{0x01020304}) == wire::number(0x01020304, 4));
}

TEST_CASE("a value that is asked for again and again is held once") {
  const auto budget = std::make_shared<Budget>(1 << 20);
  Store store{Database(budget), {}};
  const std::string value(100'000, 'x');
  store.ask(kA, Set{"big", value});
  const auto held = budget->held();
  const auto replies = store.database.apply(kB, MultiGet{std::vector<std::string>(100, "big")});
  REQUIRE(replies.has_value());
  std::size_t own = 0;
  for (const auto& piece : replies->front().pieces) own += piece.bytes.size();
  CHECK(own == 100 * sizeof(std::uint64_t));
  CHECK(wire::text_of(replies->front().pieces).size() == 100 * (sizeof(std::uint64_t) + value.size()));
  store.ask(kA, Set{"big", "small"});
  CHECK(budget->held() > held);  // the reply has the former one
}

TEST_CASE("what is held is counted, whatever brings it, and given back") {
  const auto budget = std::make_shared<Budget>(1 << 20);
  Store store{Database(budget), {}};
  const std::string value(1000, 'x');
  const std::vector<Request> bringers = {Set{"k", value},       CompareSet{"k", "", value},
                                         Append{"k", value},    MultiSet{{{"k", value}, {"l", value}}},
                                         QueuePush{"k", value}, Wait{{"k", std::string(1000, 'y')}}};
  for (const auto& bringer : bringers) {
    INFO("request " << bringer.index());
    store.ask(kA, bringer);
    CHECK(budget->held() >= 1000);
    for (const auto* key : {"k", "l"}) store.ask(kA, Delete{key});
    store.ask(kA, QueuePop{"k"});
    store.ask(kA, CancelWait{});
    CHECK(budget->held() == 0);
  }
  store.take(kA);
  for (int i = 0; i < 50; ++i) store.ask(kA, Append{"k", value});
  CHECK(store.answer(kA, Get{"k"}).size() == 8 + 50 * value.size());
  CHECK(budget->held() < 52 * value.size());
}

TEST_CASE("as many keys are listed as a request may name, so that no list takes long") {
  Store store;
  for (std::uint64_t i = 0; i < kMaxKeys; ++i) store.ask(kA, Set{std::to_string(i), ""});
  const auto listed = store.answer(kA, ListKeys{});
  CHECK(listed.starts_with(wire::number(kMaxKeys)));
  store.ask(kA, Set{"one more", ""});
  CHECK_FALSE(store.database.apply(kA, ListKeys{}).has_value());
  CHECK(store.answer(kA, CountKeys{}) == wire::number(kMaxKeys + 1));
}

TEST_CASE("a request that asks to hold more than there is room for is refused, and small ones go on") {
  const auto budget = std::make_shared<Budget>(100'000);
  Store store{Database(budget), {}};
  const std::string value(60'000, 'x');
  store.ask(kA, Set{"big", value});
  const std::vector<Request> too_large = {Set{"k", value},
                                          CompareSet{"k", "", value},
                                          Append{"k", value},
                                          Append{"big", value},
                                          QueuePush{"k", value},
                                          MultiSet{{{"k", value}}},
                                          Wait{std::vector<std::string>(100, std::string(1000, 'y'))}};
  for (const auto& request : too_large) {
    INFO("request " << request.index());
    const auto refused = store.database.apply(kB, Request(request));
    REQUIRE_FALSE(refused.has_value());
    CHECK_THAT(refused.error().message, ContainsSubstring("100000"));
    store.database.drop(kB);
    CHECK(store.answer(kA, Check{{"k"}}) == kOne);
  }
  CHECK(store.answer(kA, Get{"big"}) == wire::blob(value));
  CHECK(store.answer(kA, Add{"n", 1}) == wire::number(1));
}

TEST_CASE("add counts in decimal text") {
  struct Row {
    std::string before;
    std::int64_t amount, sum;
  };
  for (const auto& row : std::vector<Row>{{"5", -7, -2},
                                          {" 3", 1, 4},
                                          {"12abc", 1, 13},
                                          {"0x10", 1, 1},
                                          {"+4", 0, 4},
                                          {"9223372036854775807", 1, INT64_MIN}}) {
    Store store;
    store.ask(kA, Set{"n", row.before});
    CHECK(store.answer(kA, Add{"n", row.amount}) == wire::number(static_cast<std::uint64_t>(row.sum)));
    CHECK(store.answer(kA, Get{"n"}) == wire::blob(std::to_string(row.sum)));
  }
  Store store;
  CHECK(store.answer(kA, Add{"missing", 3}) == wire::number(3));
}

TEST_CASE("adding to what is no number is the client's error and changes nothing") {
  for (const auto* text : {"", "abc", "99999999999999999999"}) {
    Store store;
    store.ask(kA, Set{"n", text});
    const auto replies = store.database.apply(kA, Add{"n", 1});
    REQUIRE_FALSE(replies.has_value());
    CHECK_THAT(replies.error().message, ContainsSubstring("'n'"));
    CHECK(store.answer(kA, Get{"n"}) == wire::blob(text));
    CHECK_FALSE(store.database.apply(kA, Barrier{"n", 1}).has_value());
  }
}

TEST_CASE("compare-set writes only what was expected") {
  Store store;
  CHECK(store.answer(kA, CompareSet{"k", "old", "new"}) == wire::blob("old"));
  CHECK(store.answer(kA, Check{{"k"}}) == kOne);
  CHECK(store.answer(kA, CompareSet{"k", "", "first"}) == wire::blob("first"));
  CHECK(store.answer(kA, CompareSet{"k", "", "second"}) == wire::blob("first"));
  CHECK(store.answer(kA, CompareSet{"k", "other", "second"}) == wire::blob("first"));
  CHECK(store.answer(kA, CompareSet{"k", "first", "second"}) == wire::blob("second"));
}

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

TEST_CASE("a queue gives its values in order and is no key") {
  Store store;
  CHECK(store.answer(kA, QueueLength{"q"}) == wire::number(0));
  CHECK(store.answer(kA, QueuePop{"q"}) == wire::number(0));
  CHECK(store.answer(kA, QueuePush{"q", "1"}).empty());
  CHECK(store.answer(kA, QueuePush{"q", "22"}).empty());
  CHECK(store.answer(kA, QueueLength{"q"}) == wire::number(2));
  CHECK(store.answer(kA, Check{{"q"}}) == kZero);
  CHECK(store.answer(kA, CountKeys{}) == wire::number(0));
  CHECK(store.answer(kA, Delete{"q"}) == wire::number(0));
  CHECK(store.answer(kB, QueuePop{"q"}) == wire::number(2) + wire::blob("1"));
  CHECK(store.answer(kB, QueuePop{"q"}) == wire::number(1) + wire::blob("22"));
  CHECK(store.answer(kB, QueuePop{"q"}) == wire::number(0));
  CHECK(store.answer(kA, Check{{"q"}}) == kOne);
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

}  // namespace database_test
