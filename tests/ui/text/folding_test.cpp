#include "ui/text/folding.hpp"

#include <random>

#include "catch.hpp"
#include "ui/helpers.hpp"
#include "ui/text/rank_set.hpp"

namespace folding_test {

using namespace taas;
using namespace taas::ui;

namespace {

std::vector<std::string> words(const std::vector<FoldedLine>& lines) {
  std::vector<std::string> result;
  for (const auto& line : lines) result.push_back(format_rank_set(line.ranks) + ":" + line.text);
  return result;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("the same line of all shown ranks is one line at once") {
  Folding folding({.shown_ranks = 3});
  CHECK(folding.add(line(0, "hi", 0)).empty());
  CHECK(folding.add(line(2, "hi", 1)).empty());
  CHECK(words(folding.add(line(1, "hi", 2))) == Words{"0-2:hi"});
  CHECK_FALSE(folding.next_deadline());
}

TEST_CASE("a line that only some ranks say waits for its window") {
  Folding folding({.shown_ranks = 3});
  folding.add(line(0, "hi", 10));
  folding.add(line(2, "hi", 50));
  REQUIRE(folding.next_deadline() == at_ms(110));
  CHECK(folding.due(at_ms(109)).empty());
  CHECK(words(folding.due(at_ms(110))) == Words{"0,2:hi"});
  CHECK(words(folding.add(line(1, "hi", 120))).empty());
  CHECK(words(folding.due(at_ms(220))) == Words{"1:hi"});
}

TEST_CASE("streams and texts are told apart") {
  Folding folding({.shown_ranks = 2});
  folding.add(line(0, "x", 0, Stream::kStdout));
  CHECK(folding.add(line(1, "x", 0, Stream::kStderr)).empty());
  CHECK(words(folding.flush()) == Words{"0:x", "1:x"});
}

TEST_CASE("a rank that repeats itself is not folded with itself") {
  Folding folding({.shown_ranks = 2});
  folding.add(line(0, "x"));
  folding.add(line(0, "x"));
  CHECK(words(folding.add(line(1, "x"))) == Words{"0-1:x"});
  CHECK(words(folding.add(line(1, "x"))) == Words{"0-1:x"});
}

TEST_CASE("a match behind the rank's own newer line is not taken") {
  Folding folding({.shown_ranks = 2});
  folding.add(line(0, "a"));
  folding.add(line(1, "b"));
  folding.add(line(1, "a"));  // joins rank 0's "a" only if that keeps rank 1's order: it does not
  CHECK(words(folding.flush()) == Words{"0:a", "1:b", "1:a"});
}

TEST_CASE("what is held is bounded in lines and bytes") {
  Folding folding({.shown_ranks = 2, .max_lines = 3, .max_bytes = 100});
  for (int i = 0; i < 3; ++i) CHECK(folding.add(line(0, std::to_string(i))).empty());
  CHECK(words(folding.add(line(0, "3"))) == Words{"0:0"});
  CHECK(folding.add(line(0, std::string(101, 'x'))).size() == 4);
}

TEST_CASE("each rank's order is kept and no line is lost, whatever ranks say") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Folding folding({.shown_ranks = 4, .max_lines = 20});
    std::vector<Words> said(4), shown(4);
    auto keep = [&](const std::vector<FoldedLine>& lines) {
      for (const auto& folded : lines) {
        for (auto rank : folded.ranks) shown[static_cast<std::size_t>(rank.value)].push_back(folded.text);
      }
    };
    for (long i = 0; i < 200; ++i) {
      auto rank = random() % 4;
      auto text = std::string(1, static_cast<char>('a' + random() % 3));
      said[rank].push_back(text);
      keep(folding.add(line(static_cast<int>(rank), text, i * 10)));
    }
    keep(folding.flush());
    CHECK(shown == said);
  }
}

}  // namespace folding_test
