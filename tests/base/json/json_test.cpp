#include "base/json/json.hpp"

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <limits>

#include "catch.hpp"

namespace json_test {

using namespace taas;

namespace {

enum class Colour { kRed, kGreen };
BOOST_DESCRIBE_ENUM(Colour, kRed, kGreen)

struct Base {
  int inherited = 0;
};
BOOST_DESCRIBE_STRUCT(Base, (), (inherited))

struct Part {
  NodeIndex node;
  std::int8_t small = 0;
};
BOOST_DESCRIBE_STRUCT(Part, (), (node, small))

struct Whole : Base {
  bool yes = false;
  double ratio = 0;
  std::uint64_t large = 0;
  std::int64_t negative = 0;
  std::string text;
  Colour colour = Colour::kRed;
  std::optional<int> there;
  std::optional<std::string> absent;
  std::vector<Part> parts;
  std::map<std::string, std::vector<int>> lists;
  std::pair<int, std::string> pair;
  std::chrono::milliseconds patience{};
  Instant at{};
};
BOOST_DESCRIBE_STRUCT(Whole, (Base),
                      (yes, ratio, large, negative, text, colour, there, absent, parts, lists, pair, patience, at))

const char* const kText =
    R"({"inherited":7,"yes":true,"ratio":2.5E-1,"large":18446744073709551615,"negative":-9223372036854775808,)"
    R"("text":"two\nlines","colour":"kGreen","there":3,"absent":null,"parts":[{"node":1,"small":-128}],)"
    R"("lists":{"a":[1,2],"b":[]},"pair":[4,"four"],"patience":1500,"at":9007199254740993})";

Whole sample() {
  Whole whole;
  whole.inherited = 7;
  whole.yes = true;
  whole.ratio = 0.25;
  whole.large = std::numeric_limits<std::uint64_t>::max();
  whole.negative = std::numeric_limits<std::int64_t>::min();
  whole.text = "two\nlines";
  whole.colour = Colour::kGreen;
  whole.there = 3;
  whole.parts = {{NodeIndex{1}, -128}};
  whole.lists = {{"a", {1, 2}}, {"b", {}}};
  whole.pair = {4, "four"};
  whole.patience = std::chrono::milliseconds(1500);
  whole.at = Instant(Duration(9007199254740993));  // more than a double holds exactly
  return whole;
}

/// What is wrong with the sample once this member of it has another value; "" when nothing is.
std::string complaint(const std::string& member, const std::string& json) {
  auto object = parse_json(kText).value().as_object();
  object[member] = parse_json(json).value();
  auto whole = from_json<Whole>(object);
  return whole ? "" : whole.error().message;
}

}  // namespace

TEST_CASE("every kind of member is written") { CHECK(boost::json::serialize(to_json(sample())) == kText); }

TEST_CASE("every kind of member is read back exactly") {
  auto whole = from_json<Whole>(parse_json(kText).value());
  REQUIRE(whole.has_value());
  CHECK(whole->inherited == 7);
  CHECK(whole->colour == Colour::kGreen);
  CHECK(whole->there == 3);
  CHECK_FALSE(whole->absent.has_value());
  CHECK(whole->lists.at("a") == std::vector<int>{1, 2});
  CHECK(whole->patience == std::chrono::milliseconds(1500));
  CHECK(whole->at.time_since_epoch().count() == 9007199254740993);
  CHECK(boost::json::serialize(to_json(*whole)) == kText);
}

TEST_CASE("members that nobody knows are ignored") { CHECK(complaint("new", "[1]").empty()); }

TEST_CASE("an error names the place") {
  CHECK(complaint("parts", R"([{"node":1,"small":1},{"small":1}])") == "parts[1].node: missing");
  CHECK(complaint("parts", R"([{"node":1,"small":128}])") == "parts[0].small: not a number in range");
  CHECK(complaint("parts", "{}") == "parts: not an array");
  CHECK(complaint("parts", "[1]") == "parts[0]: not an object");
  CHECK(complaint("lists", R"({"a":[1,"x"]})") == "lists.a[1]: not a number");
  CHECK(complaint("lists", "[]") == "lists: not an object");
  CHECK(complaint("pair", "[1]") == "pair: not an array of two");
  CHECK(complaint("pair", "[1,2]") == "pair[1]: not a text");
  CHECK(from_json<Whole>(1).error().message == "not an object");
}

TEST_CASE("nothing is rounded, cut or converted") {
  CHECK(complaint("inherited", "2147483647").empty());
  CHECK(complaint("inherited", "2147483648") == "inherited: not a number in range");
  CHECK(complaint("inherited", "1.5") == "inherited: not a number in range");
  CHECK(complaint("inherited", "true") == "inherited: not a number");
  CHECK(complaint("large", "-1") == "large: not a number in range");
  CHECK(complaint("large", "18446744073709551616") == "large: not a number in range");
  CHECK(complaint("at", "9223372036854775808") == "at: not a number in range");
  CHECK(complaint("yes", "1") == "yes: not true or false");
  CHECK(complaint("colour", "\"kBlue\"") == "colour: not one of the known names");
  CHECK(complaint("there", "\"3\"") == "there: not a number");
}

TEST_CASE("bytes that are no UTF-8 come back as they were, in texts and keys") {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::map<std::string, std::string> bytes{{"k\xff", "v\xc3"}, {"caf\xe9", all}, {all, "\xed\xa0\x80"}};
  auto read = parse_json(boost::json::serialize(to_json(bytes)));
  REQUIRE(read.has_value());
  CHECK(from_json<std::map<std::string, std::string>>(*read).value() == bytes);
}

TEST_CASE("text that is not JSON, or nested too deep, is refused without being repeated") {
  for (const std::string text : {"", "{", "{\"secret\":1} x", "nul", "\"\xff"}) {
    auto value = parse_json(text);
    REQUIRE_FALSE(value.has_value());
    CHECK_THAT(value.error().message, !ContainsSubstring("secret"));
  }
  CHECK(parse_json(std::string(16, '[') + std::string(16, ']')).has_value());
  CHECK_FALSE(parse_json(std::string(17, '[') + std::string(17, ']')).has_value());
  CHECK_FALSE(parse_json(std::string(1000000, '[')).has_value());
}

}  // namespace json_test
