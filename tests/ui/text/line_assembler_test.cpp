#include "ui/text/line_assembler.hpp"

#include <random>

#include "catch.hpp"

namespace Catch {
template <>
struct StringMaker<taas::ui::AssembledLine> {
  static std::string convert(const taas::ui::AssembledLine& line) {
    return (line.progress ? "~" : "") + ("\"" + line.text.substr(0, 80) + "\"");
  }
};
}  // namespace Catch

namespace line_assembler_test {

using namespace taas::ui;

using Lines = std::vector<AssembledLine>;

namespace {

Lines all_lines(const std::vector<std::string>& pieces) {
  LineAssembler assembler;
  Lines lines;
  for (const auto& piece : pieces) {
    for (auto& line : assembler.add(piece)) lines.push_back(line);
  }
  for (auto& line : assembler.finish()) lines.push_back(line);
  return lines;
}

/// As users see them.
Lines shown(Lines lines) {
  for (auto& line : lines) line.raw.reset();
  return lines;
}

std::string bytes_of(const Lines& lines) {
  std::string bytes;
  for (const auto& line : lines) {
    bytes += line.raw ? *line.raw : line.text + std::string(usual_end(line.progress, line.open));
  }
  return bytes;
}

std::vector<std::string> chop(const std::string& text, std::mt19937& random, std::size_t longest) {
  std::vector<std::string> pieces;
  for (std::size_t done = 0; done < text.size();) {
    auto length = 1 + random() % longest;
    pieces.push_back(text.substr(done, length));
    done += length;
  }
  return pieces;
}

}  // namespace

TEST_CASE("bytes become lines") {
  struct Case {
    std::string bytes;
    Lines lines;
  };
  const std::vector<Case> cases{
      {"", {}},
      {"a\n", {{"a"}}},
      {"a\nb\n", {{"a"}, {"b"}}},
      {"\n\n", {{""}, {""}}},
      {"a\r\nb\r\n", {{"a"}, {"b"}}},
      {"no end", {{"no end"}}},
      {"1%\r2%\r3%\n", {{"1%", true}, {"2%", true}, {"3%"}}},
      {"\r1%\r2%\r100%\ndone\n", {{"1%", true}, {"2%", true}, {"100%"}, {"done"}}},
      {"1%\r2%\r\nx\n", {{"1%", true}, {"2%"}, {"x"}}},
      {"1%\r100%\r\r\n", {{"1%", true}, {"100%", true}, {"100%"}}},
      {"1%\r100%\r", {{"1%", true}, {"100%"}}},
      {"\r1%\r2%", {{"1%", true}, {"2%"}}},
      {"\r50%\r   \rend\n", {{"50%", true}, {"   ", true}, {"end"}}},
      {"\r50%\r   \r", {{"50%", true}, {"", true}}},
      {"\r\r", {{"", true}}},
      {std::string("a\0b\n", 4), {{std::string("a\0b", 3)}}},
  };
  for (const auto& item : cases) {
    CAPTURE(item.bytes);
    auto lines = all_lines({item.bytes});
    CHECK(bytes_of(lines) == item.bytes);
    CHECK(shown(lines) == item.lines);
  }
}

TEST_CASE("any chopping gives the same lines") {
  std::mt19937 random(20240607);
  const std::string alphabet = "ab\xc3\xa9\xe6\xbc\xa2\r\r\n\n\xff";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = 0, length = random() % 60; i < length; ++i) text += alphabet[random() % alphabet.size()];
    if (round % 50 == 0) text.insert(random() % (text.size() + 1), std::string(random() % 200000, 'x') + "漢漢");
    CAPTURE(round);
    auto whole = all_lines({text});
    CHECK(all_lines(chop(text, random, 1 + random() % 20)) == whole);
    CHECK(all_lines(chop(text, random, 70000)) == whole);
  }
}

TEST_CASE("raw bytes are the stream, however often it is quiet") {
  std::mt19937 random(20250101);
  const std::string alphabet = "ab \xc3\xa9\r\r\n";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = 0, length = random() % 60; i < length; ++i) text += alphabet[random() % alphabet.size()];
    if (round % 20 == 0) text.insert(random() % (text.size() + 1), std::string(65530 + random() % 10, 'x'));
    if (round % 50 == 0) text.insert(random() % (text.size() + 1), std::string(140000, '\r'));
    CAPTURE(round);
    LineAssembler assembler;
    Lines lines;
    auto keep = [&](const Lines& more) { lines.insert(lines.end(), more.begin(), more.end()); };
    for (const auto& piece : chop(text, random, text.size() < 100 ? 5 : 70000)) {
      keep(assembler.add(piece));
      if (random() % 2 == 0) keep(assembler.flush_partial());
    }
    keep(assembler.finish());
    CHECK(bytes_of(lines) == text);
  }
}

TEST_CASE("long lines come in pieces without loss and without split characters") {
  std::string text;
  while (text.size() < 300000) text += "é漢😀x";
  auto lines = all_lines({text + "\n"});
  std::string joined;
  for (const auto& line : lines) {
    CHECK(line.text.size() <= LineAssembler::kMaxLine);
    CHECK((static_cast<unsigned char>(line.text.front()) & 0xc0) != 0x80);
    joined += line.text;
  }
  CHECK(joined == text);
  CHECK(all_lines({std::string(LineAssembler::kMaxLine, 'x') + "\n"}).size() == 1);
  CHECK(all_lines({std::string(LineAssembler::kMaxLine + 1, 'x') + "\n"}).size() == 2);
}

TEST_CASE("a prompt is given out when the stream is quiet") {
  LineAssembler assembler;
  CHECK(assembler.add("name? ").empty());
  REQUIRE(assembler.has_partial());
  CHECK(shown(assembler.flush_partial()) == Lines{{"name? ", false, true}});
  CHECK_FALSE(assembler.has_partial());
  CHECK(assembler.flush_partial().empty());
  SECTION("its line end is one without text") { CHECK(shown(assembler.add("\nx\n")) == Lines{{""}, {"x"}}); }
  SECTION("more text makes a line") { CHECK(shown(assembler.add("you\n")) == Lines{{"you"}}); }
  SECTION("nor does the end of the stream") { CHECK(assembler.finish().empty()); }
}

TEST_CASE("a quiet stream never splits a character") {
  LineAssembler assembler;
  assembler.add("a\xe6\xbc");
  CHECK(shown(assembler.flush_partial()) == Lines{{"a", false, true}});
  CHECK(assembler.flush_partial().empty());
  CHECK(shown(assembler.add("\xa2\n")) == Lines{{"漢"}});
}

TEST_CASE("a quiet bar is progress and still ends as a line") {
  LineAssembler assembler;
  assembler.add("\r50%");
  CHECK(shown(assembler.flush_partial()) == Lines{{"50%", true}});
  CHECK(assembler.flush_partial().empty());
  SECTION("drawn over") { CHECK(shown(assembler.add("\r51%\n")) == Lines{{"51%"}}); }
  SECTION("ended") { CHECK(shown(assembler.add("\n")) == Lines{{"50%"}}); }
  SECTION("stream ended") { CHECK(shown(assembler.finish()) == Lines{{"50%"}}); }
}

TEST_CASE("a quiet stream after '\\r' waits for what follows") {
  LineAssembler assembler;
  CHECK(assembler.add("50%\r").empty());
  CHECK(shown(assembler.flush_partial()) == Lines{{"50%", true}});
  SECTION("a line end") { CHECK(shown(assembler.add("\n")) == Lines{{"50%"}}); }
  SECTION("the next state") { CHECK(shown(assembler.add("60%\n")) == Lines{{"60%"}}); }
}

}  // namespace line_assembler_test
