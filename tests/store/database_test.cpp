#include "store/database.hpp"

#include "catch.hpp"
#include "collected_replies.hpp"
#include "store/parser.hpp"
#include "store/wire.hpp"

namespace database_test {

using namespace taas;
using namespace taas::store;
using collected_replies::kA;
using collected_replies::kB;
using collected_replies::kOne;
using collected_replies::kZero;
using collected_replies::Store;

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

}  // namespace database_test
