#include "ui/text/style.hpp"

#include "catch.hpp"

namespace style_test {

using namespace taas;
using namespace taas::ui;

TEST_CASE("flag, NO_COLOR, CLICOLOR_FORCE, CLICOLOR, TERM, terminal: the first that speaks decides") {
  using plan::Color;
  struct Case {
    Color flag;
    std::map<std::string, std::string> environment;
    bool terminal;
    bool expected;
  };
  const std::vector<Case> cases{
      {Color::kAuto, {}, true, true},
      {Color::kAuto, {}, false, false},
      {Color::kAlways, {{"NO_COLOR", "1"}}, false, true},
      {Color::kNever, {{"CLICOLOR_FORCE", "1"}}, true, false},
      {Color::kAuto, {{"NO_COLOR", "1"}, {"CLICOLOR_FORCE", "1"}}, true, false},
      {Color::kAuto, {{"NO_COLOR", ""}}, true, true},
      {Color::kAuto, {{"CLICOLOR_FORCE", "1"}, {"CLICOLOR", "0"}}, false, true},
      {Color::kAuto, {{"CLICOLOR_FORCE", "0"}}, false, false},
      {Color::kAuto, {{"CLICOLOR", "0"}}, true, false},
      {Color::kAuto, {{"CLICOLOR", "1"}}, false, false},
      {Color::kAuto, {{"TERM", "dumb"}}, true, false},
      {Color::kAuto, {{"TERM", "dumb"}, {"CLICOLOR_FORCE", "1"}}, false, true},
      {Color::kAuto, {{"TERM", "xterm"}}, true, true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(i);
    CHECK(wants_color(cases[i].flag, cases[i].environment, cases[i].terminal) == cases[i].expected);
  }
}

TEST_CASE("paint leaves text alone without colour") {
  CHECK(Style(false).paint(Paint::kRed, "x") == "x");
  CHECK(Style(true).paint(Paint::kRed, "x") == "\x1b[1;31mx\x1b[0m");
  CHECK(Style(true).paint(Paint::kRed, "").empty());
  CHECK(Style(true).paint_rank(Rank{0}, "x") != Style(true).paint_rank(Rank{1}, "x"));
  CHECK(Style(false).paint_rank(Rank{0}, "x") == "x");
}

}  // namespace style_test
