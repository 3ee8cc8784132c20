#include "run/events/pickle.hpp"

#include "catch.hpp"

namespace pickle_test {

using namespace taas::run;
using namespace std::string_view_literals;

TEST_CASE("plain data is read from the protocols of torch and of Python") {
  const boost::json::value expected{
      {"a", {1, -2, 300, 70000, 1.5}}, {"b", {true, false, nullptr}}, {"c", {"x", "x"}}, {"big", 1795371633091033361}};
  // {"a": [1, -2, 300, 70000, 1.5], "b": (True, False, None), "c": ["x", "x"], "big": 1795371633091033361}
  const auto second =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00G?\xf8\x00\x00\x00\x00\x00\x00"
      "eX\x01\x00\x00\x00"
      "bq\x03\x88\x89N\x87q\x04X\x01\x00\x00\x00"
      "cq\x05]q\x06(X\x01\x00\x00\x00xq\x07h\x07"
      "eX\x03\x00\x00\x00"
      "bigq\x08\x8a\x08\x11"
      "94\xee\xfcp\xea\x18u."sv;
  const auto fourth =
      "\x80\x04\x95P\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01"
      "a\x94]\x94(K\x01J\xfe\xff\xff\xffM,\x01Jp\x11\x01\x00G?\xf8\x00\x00\x00\x00\x00\x00"
      "e\x8c\x01"
      "b\x94\x88\x89N\x87\x94\x8c\x01"
      "c\x94]\x94(\x8c\x01x\x94h\x07"
      "e\x8c\x03"
      "big\x94\x8a\x08\x11"
      "94\xee\xfcp\xea\x18u."sv;
  for (auto bytes : {second, fourth}) {
    auto read = read_pickle(bytes);
    REQUIRE(read.has_value());
    CHECK(*read == expected);
  }
}

TEST_CASE("a list that is named twice is the same one, filled later or not") {
  CHECK(read_pickle("\x80\x02]q\x00(h\x01.\x00"sv) == std::nullopt);
  CHECK(read_pickle("\x80\x02]q\x01]q\x02(h\x02K\x05"
                    "e."sv) == std::nullopt);  // two values are left
  auto read = read_pickle(
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "a]q\x01X\x01\x00\x00\x00"
      "bh\x01K\x07"
      "au."sv);
  REQUIRE(read.has_value());
  CHECK(*read == boost::json::value{{"a", boost::json::array{7}}, {"b", boost::json::array{7}}});
}

TEST_CASE("what would run code, contains itself, or is cut off is refused") {
  CHECK(read_pickle("cos\nsystem\n(X\x02\x00\x00\x00lstR."sv) == std::nullopt);
  CHECK(read_pickle("\x80\x02]q\x00h\x00"
                    "a."sv) == std::nullopt);
  CHECK(read_pickle("\x80\x02}q\x00(X\xff\x00\x00\x00"
                    "a"sv) == std::nullopt);
  CHECK(read_pickle("\x80\x02]"sv) == std::nullopt);
  CHECK(read_pickle(""sv) == std::nullopt);
  CHECK(read_pickle("\x80\x02}(K\x01K\x02u."sv) == std::nullopt);  // a key that is no string
}

TEST_CASE("a few bytes cannot become many values") {
  std::string nested = "\x80\x02]";  // each list holds the one before it ten times
  for (char name = 0; name < 20; ++name) {
    nested += std::string("q") + name + "](" + [&] {
      std::string ten;
      for (int i = 0; i < 10; ++i) ten += std::string("h") + name;
      return ten;
    }() + "e";
  }
  CHECK(read_pickle(nested + ".") == std::nullopt);
}

TEST_CASE("a few bytes cannot become many, named as a value or as a key") {
  const std::string million(1'000'000, 'x');
  const auto text = std::string("X\x40\x42\x0f\x00", 5) + million;
  std::string values = "\x80\x02" + text + "q\x01](";
  std::string keys = "\x80\x02" + text + "q\x01](";
  for (int i = 0; i < 1000; ++i) {
    values += "h\x01";
    keys += "}h\x01Ns";
  }
  CHECK((read_pickle(values + "e\x86.") == std::nullopt));
  CHECK((read_pickle(keys + "e\x86.") == std::nullopt));
}

TEST_CASE("nothing that a reader notes grows without a limit") {
  const auto repeated = [](char opcode) { return "\x80\x04N" + std::string(20 << 20, opcode) + "."; };
  for (const char opcode : {'(', '\x94'}) CHECK((read_pickle(repeated(opcode)) == std::nullopt));
}

}  // namespace pickle_test
