#include "store/parser.hpp"

#include "catch.hpp"
#include "store/wire.hpp"

namespace parser_test {

using namespace taas;
using namespace taas::store;

namespace {

/// A parser that has been greeted.
Parser greeted() {
  Parser parser;
  const auto greeting = wire::greeting();
  std::string_view bytes = greeting;
  REQUIRE(parser.next(bytes).has_value());
  return parser;
}

/// The one request that these bytes are, whole and nothing more.
template <class T>
T parse(const std::string& bytes) {
  auto parser = greeted();
  std::string_view rest = bytes;
  auto request = parser.next(rest);
  REQUIRE(request.has_value());
  REQUIRE(request->has_value());
  CHECK(rest.empty());
  REQUIRE(std::holds_alternative<T>(**request));
  return std::get<T>(std::move(**request));
}

std::string error_of(Parser parser, const std::string& bytes) {
  std::string_view rest = bytes;
  while (true) {
    auto request = parser.next(rest);
    if (!request) {
      CHECK(request.error().code == ErrorCode::kProtocol);
      return request.error().message;
    }
    if (!*request) return "";
  }
}

const std::vector<std::string> kTwoKeys = {"a", "bc"};

}  // namespace

TEST_CASE("each request is read with its arguments") {
  const auto set = parse<Set>(wire::set("key", "value"));
  CHECK(set.key == "key");
  CHECK(set.value == "value");

  const auto compare = parse<CompareSet>(wire::blobs(wire::kCompareSet, {"k", "", "new"}));
  CHECK(compare.key == "k");
  CHECK(compare.expected.empty());
  CHECK(compare.desired == "new");

  CHECK(parse<Get>(wire::get("k")).key == "k");
  CHECK(parse<Add>(wire::blobs(wire::kAdd, {"n"}) + wire::number(-7ULL)).amount == -7);
  CHECK(parse<Check>(wire::counted(wire::kCheck, 2, {"a", "bc"})).keys == kTwoKeys);
  CHECK(parse<Wait>(wire::counted(wire::kWait, 2, {"a", "bc"})).keys == kTwoKeys);
  CHECK(parse<MultiGet>(wire::counted(wire::kMultiGet, 2, {"a", "bc"})).keys == kTwoKeys);
  parse<CountKeys>(wire::request(wire::kCountKeys));
  CHECK(parse<Delete>(wire::blobs(wire::kDelete, {"k"})).key == "k");
  CHECK(parse<Append>(wire::blobs(wire::kAppend, {"k", "more"})).value == "more");
  parse<CancelWait>(wire::request(wire::kCancelWait));
  CHECK(parse<Ping>(wire::ping(0xDEADBEEF)).nonce == 0xDEADBEEF);
  CHECK(parse<QueuePush>(wire::blobs(wire::kQueuePush, {"q", "item"})).value == "item");
  CHECK(parse<QueuePop>(wire::blobs(wire::kQueuePop, {"q"})).key == "q");
  CHECK(parse<QueueLength>(wire::blobs(wire::kQueueLength, {"q"})).key == "q");
  parse<ListKeys>(wire::request(wire::kListKeys));
  const auto barrier = parse<Barrier>(wire::blobs(wire::kBarrier, {"b"}) + wire::number(8));
  CHECK(barrier.key == "b");
  CHECK(barrier.size == 8);
}

TEST_CASE("a multi-set keeps keys and values together") {
  const auto request = parse<MultiSet>(wire::counted(wire::kMultiSet, 2, {"a", "1", "b", "2"}));
  CHECK(request.entries == std::vector<std::pair<std::string, std::string>>{{"a", "1"}, {"b", "2"}});
}

TEST_CASE("a count of zero is a whole request") {
  CHECK(parse<Check>(wire::counted(wire::kCheck, 0, {})).keys.empty());
  CHECK(parse<MultiSet>(wire::counted(wire::kMultiSet, 0, {})).entries.empty());
}

TEST_CASE("keys and values may be empty and may hold any byte") {
  const std::string any("\0\xFF\n", 3);
  CHECK(parse<Set>(wire::set("", any)).value == any);
  CHECK(parse<Set>(wire::set(any, "")).key == any);
}

TEST_CASE("a request is the same however its bytes are cut") {
  const auto bytes = wire::set("key", "value") + wire::counted(wire::kMultiSet, 2, {"a", "1", "b", ""}) +
                     wire::request(wire::kListKeys) + wire::ping(7);
  for (std::size_t piece = 1; piece < bytes.size(); ++piece) {
    auto parser = greeted();
    std::vector<std::size_t> kinds;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      auto rest = std::string_view(bytes).substr(at, piece);
      for (auto request = parser.next(rest); *request; request = parser.next(rest))
        kinds.push_back((*request)->index());
      CHECK(rest.empty());
    }
    const std::vector<std::size_t> expected = {Request(Set{}).index(), Request(MultiSet{}).index(),
                                               Request(ListKeys{}).index(), Request(Ping{}).index()};
    CHECK(kinds == expected);
  }
}

TEST_CASE("half a request is not yet one") {
  const auto bytes = wire::set("key", "value");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto parser = greeted();
    auto rest = std::string_view(bytes).substr(0, size);
    auto request = parser.next(rest);
    REQUIRE(request.has_value());
    CHECK_FALSE(request->has_value());
    CHECK(rest.empty());
  }
}

TEST_CASE("a client must greet first, rightly and once") {
  CHECK_THAT(error_of(Parser(), "GET / HTTP/1.1\r\n\r\n"), ContainsSubstring("unknown type 71"));
  CHECK_THAT(error_of(Parser(), wire::ping(7)), ContainsSubstring("not a TCPStore client"));
  CHECK_THAT(error_of(Parser(), wire::request(wire::kValidate, "abcd")), ContainsSubstring("magic"));
  CHECK_THAT(error_of(greeted(), wire::greeting()), ContainsSubstring("already given"));
  CHECK_THAT(error_of(greeted(), "\x13"), ContainsSubstring("unknown type 19"));
}

TEST_CASE("lengths beyond the limits are refused before their bytes come") {
  const auto huge = wire::number(~0ULL);
  CHECK_THAT(error_of(greeted(), wire::request(wire::kGet, huge)), ContainsSubstring("key of 18446744073709551615"));
  CHECK_THAT(error_of(greeted(), wire::request(wire::kWait, huge)), ContainsSubstring("keys in one request"));
  CHECK_THAT(error_of(greeted(), wire::blobs(wire::kSet, {"k"}) + huge), ContainsSubstring("value of"));
  CHECK(error_of(greeted(), wire::request(wire::kGet, wire::number(kMaxKeyBytes))).empty());
  CHECK_FALSE(error_of(greeted(), wire::request(wire::kGet, wire::number(kMaxKeyBytes + 1))).empty());
  CHECK(error_of(greeted(), wire::request(wire::kWait, wire::number(kMaxKeys))).empty());
  CHECK_FALSE(error_of(greeted(), wire::request(wire::kWait, wire::number(kMaxKeys + 1))).empty());
}

TEST_CASE("all keys and values of a request share one limit") {
  const auto first = wire::counted(wire::kMultiSet, 2, {"k", std::string(1000, 'x')});
  CHECK(error_of(greeted(), first + wire::number(1) + "l" + wire::number(kMaxRequestBytes - 1002)).empty());
  CHECK_FALSE(error_of(greeted(), first + wire::number(1) + "l" + wire::number(kMaxRequestBytes - 1001)).empty());
}

}  // namespace parser_test
