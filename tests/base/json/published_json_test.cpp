#include "base/json/published_json.hpp"

#include <boost/json/parse.hpp>
#include <cmath>
#include <limits>

#include "base/json/json_schema.hpp"
#include "catch.hpp"

namespace published_json_test {

using namespace taas;
using namespace std::chrono_literals;

enum class Way { kByHand, kByItself };
struct Part {
  std::string name;
  Rank rank;
};
struct Whole {
  Way way = Way::kByItself;
  std::vector<Part> parts;
  std::optional<double> share;
  std::map<std::string, int> counts;
  std::pair<std::string, bool> both;
  Duration took{};
  Instant at;
};
BOOST_DESCRIBE_ENUM(Way, kByHand, kByItself)
BOOST_DESCRIBE_STRUCT(Part, (), (name, rank))
BOOST_DESCRIBE_STRUCT(Whole, (), (way, parts, share, counts, both, took, at))

namespace {

std::string text_of(double number) { return published_text(boost::json::value(number)); }

}  // namespace

TEST_CASE("numbers have no exponents, and six decimals at most") {
  CHECK(text_of(0.000012) == "0.000012");
  CHECK(text_of(1e-9) == "0");
  CHECK(text_of(-1e-9) == "0");
  CHECK(text_of(-1) == "-1");
  CHECK(text_of(30) == "30");
  CHECK(text_of(100) == "100");
  CHECK(text_of(4.959884490605106e8) == "495988449.060511");
  CHECK(text_of(1e20) == "100000000000000000000");
  CHECK(text_of(std::nan("")) == "null");
  CHECK(text_of(std::numeric_limits<double>::infinity()) == "null");
  CHECK(published_text(boost::json::value(std::uint64_t{18446744073709551615u})) == "18446744073709551615");
}

TEST_CASE("a struct is written for readers that are not ours") {
  const Whole whole{Way::kByHand, {{"a\xff\"", Rank{2}}}, 0.5, {{"b", 1}}, {"c", true}, 1500ms, Instant(250ms)};
  CHECK(published_document(whole) == R"({"schema":1,"way":"by_hand","parts":[{"name":"a)"
                                     "\xef\xbf\xbd"
                                     R"(\"","rank":2}],)"
                                     R"("share":0.5,"counts":{"b":1},)"
                                     R"("both":["c",true],"took":1.5,"t":0.25})");
}

TEST_CASE("what is not set is null, and an instant is left out") {
  CHECK(published_document(Whole{}) ==
        R"({"schema":1,"way":"by_itself","parts":[],"share":null,"counts":{},"both":["",false],"took":0})");
}

TEST_CASE("the schema of a struct has its members, and each inner struct once") {
  JsonSchema schema;
  schema.add_document<Whole>("whole");
  CHECK(schema.definitions.at("part") ==
        boost::json::parse(R"({"type":"object","properties":{"name":{"type":"string"},"rank":{"type":"integer"}},
                               "required":["name","rank"]})"));
  CHECK(schema.definitions.at("whole") == boost::json::parse(R"({"type":"object","properties":{
    "schema":{"const":1}, "way":{"enum":["by_hand","by_itself"]},
    "parts":{"type":"array","items":{"$ref":"#/$defs/part"}},
    "share":{"anyOf":[{"type":"number"},{"type":"null"}]},
    "counts":{"type":"object","additionalProperties":{"type":"integer"}},
    "both":{"type":"array","prefixItems":[{"type":"string"},{"type":"boolean"}],"minItems":2,"maxItems":2},
    "took":{"type":"number"}, "t":{"type":"number"}},
    "required":["schema","way","parts","share","counts","both","took"]})"));
  CHECK(schema.definitions.size() == 2);
}

}  // namespace published_json_test
