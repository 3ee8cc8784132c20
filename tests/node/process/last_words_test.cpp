#include "node/process/last_words.hpp"

#include "catch.hpp"

namespace last_words_test {

using namespace taas;
using node::LastWords;

namespace {

Instant at(int millisecond) { return Instant{} + std::chrono::milliseconds(millisecond); }

}  // namespace

TEST_CASE("the instant of the first fatal line is kept") {
  LastWords words;
  words.add("epoch 1", at(1));
  CHECK(words.first_error_at() == Instant{});
  words.add("Traceback (most recent call last):", at(5));
  words.add("ValueError: bad", at(6));
  words.add("Traceback (most recent call last):", at(9));
  CHECK(words.first_error_at() == at(5));
}

TEST_CASE("the last lines are kept, in order, in bounded memory") {
  LastWords words;
  CHECK(words.empty());
  for (int i = 0; i < 10000; ++i) words.add("line " + std::to_string(i), at(i + 1));
  auto lines = words.lines();
  CHECK(lines.size() < 1000);
  CHECK(lines.back() == "line 9999");
  CHECK(lines[lines.size() - 2] == "line 9998");
  words.add(std::string(1 << 20, 'x'), at(20000));
  CHECK(words.lines().back().size() < 10000);
}

TEST_CASE("an error that the rank has outlived gives way to the next") {
  LastWords words;
  words.add("Traceback (most recent call last):", at(5));
  words.add("Traceback (most recent call last):", at(20000));
  CHECK(words.first_error_at() == at(20000));
}

}  // namespace last_words_test
