#include "ui/view/rank_lines.hpp"

#include "catch.hpp"
#include "ui/helpers.hpp"

namespace rank_lines_test {

using namespace taas;
using namespace taas::ui;

namespace {

std::vector<std::string> texts(const std::vector<ShownLine>& lines) {
  std::vector<std::string> result;
  for (const auto& shown : lines) result.push_back(shown.text);
  return result;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("only streams on the console are shown") {
  auto options = options_for(2);
  options.outputs[0] = {true, false};
  RankLines lines(options);
  CHECK(texts(lines.add(line(0, "out"))) == Texts{"out"});
  CHECK(lines.add(line(0, "err", 0, Stream::kStderr)).empty());
  CHECK(lines.add(line(1, "other")).empty());
  CHECK_FALSE(lines.shows(line(7, "outside the world")));
}

TEST_CASE("one shown rank has no prefix and does not wait") {
  RankLines lines(options_for(8));
  CHECK(texts(lines.add(line(0, "x"))) == Texts{"x"});
  CHECK_FALSE(lines.next_deadline());
}

TEST_CASE("the mere end of a line that stands there is not shown") {
  RankLines lines(options_for(1));
  auto prompt = line(0, "name? ");
  prompt.open = true;
  CHECK(texts(lines.add(prompt)) == Texts{"name? "});
  CHECK(lines.add(line(0, "")).empty());
  CHECK(texts(lines.add(line(0, ""))) == Texts{""});
  lines.add(prompt);
  CHECK(texts(lines.add(line(0, "you"))) == Texts{"you"});
}

TEST_CASE("several shown ranks are told apart and folded") {
  RankLines lines(options_for(3, 2));
  CHECK(lines.add(line(0, "same")).empty());
  CHECK(texts(lines.add(line(1, "same"))) == Texts{"[0-1] same"});
  lines.add(line(1, "alone"));
  CHECK(texts(lines.flush()) == Texts{"[1] alone"});
}

TEST_CASE("a template has the names of nodes that were not known before they met") {
  auto options = options_for(3, 3);
  options.prefix_template = "${role_name}@${hostname}:${local_rank}:${rank} ";
  options.role = "trainer";
  options.prefixes = {"", "", ""};
  RankLines lines(options);
  lines.update({3, {NodeIndex{0}, NodeIndex{1}, NodeIndex{1}}, {"hosta", "hostb"}, at_ms(0)});
  CHECK(texts(lines.add(line(0, "x"))) == Texts{"trainer@hosta:0:0 x"});
  CHECK(texts(lines.add(line(2, "x"))) == Texts{"trainer@hostb:1:2 x"});
  lines.update({1, {NodeIndex{0}}, {"hostb"}, at_ms(0)});
  CHECK(texts(lines.add(line(0, "x"))) == Texts{"trainer@hostb:0:0 x"});
}

TEST_CASE("ranks that are known only when nodes meet are shown as the flags say") {
  auto options = options_for(4);  // as if there were two nodes of two
  options.chosen.emplace().tee = "1:3";
  RankLines lines(options);
  lines.update({5, {NodeIndex{0}, NodeIndex{0}, NodeIndex{1}, NodeIndex{1}, NodeIndex{1}}, {"a", "b"}, {}});
  std::vector<bool> shown;
  for (int rank = 0; rank < 6; ++rank) shown.push_back(lines.shows(line(rank, "x")));
  CHECK(shown == std::vector<bool>{true, true, false, true, false, false});
}

TEST_CASE("a template of the user's is used for every line, unfolded") {
  auto options = options_for(2, 2);
  options.prefixes = {"a:", "b:"};
  RankLines lines(options);
  CHECK(texts(lines.add(line(0, "same"))) == Texts{"a:same"});
  CHECK(texts(lines.add(line(1, "same"))) == Texts{"b:same"});
}

TEST_CASE("the prefix is painted by stream") {
  auto options = options_for(2, 2);
  options.stderr_style = Style(true);
  RankLines lines(options);
  lines.add(line(1, "out"));
  lines.add(line(1, "err", 0, Stream::kStderr));
  CHECK(texts(lines.flush()) == Texts{"[1] out", "\x1b[33m[1] \x1b[0merr"});
}

}  // namespace rank_lines_test
