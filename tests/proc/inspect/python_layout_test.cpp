#include "proc/inspect/python_layout.hpp"

#include <cstring>
#include <sstream>

#include "proc/inspect/interpreters.hpp"

namespace python_layout_test {

using namespace taas;
using namespace taas::test;

namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> result;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    result.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return result;
}

/// A str object as 3.12 has it.
std::vector<std::byte> text_object(std::uint64_t length, unsigned kind, bool ascii, const std::vector<int>& data) {
  std::vector<std::byte> object(ascii ? 40 : 56);
  const std::uint32_t state = kind << 2 | 1U << 5 | (ascii ? 1U << 6 : 0U);
  std::memcpy(object.data() + 16, &length, sizeof length);
  std::memcpy(object.data() + 32, &state, sizeof state);
  for (int value : data) object.push_back(static_cast<std::byte>(value));
  return object;
}

/// Functions with what line tables have entries for: calls over lines, loops, handlers, jumps back, long gaps, and no
/// arguments at all. Says the first line and table of each, and the lines of all instructions.
constexpr const char* kPrintTables = R"(
import dis, sys, types
source = '''def f(a, b=(
        1)):
    x = [i
         for i in a]
    try:
        with open(
            a) as b:
            for i in range(10): print(i,
                i + 1)
    except (ValueError,
            TypeError) as e:
        raise
    finally:
        print(1)
    return g(
        1,
        h(2,
          a),
    )
''' + chr(10) * 300 + '''
class C: x = 1; y = lambda self: (yield)
async def k(x):
    async with x as y, \\
        y as z:
        await z
    return {**{},
    **{}}
''' + chr(10) * 5 + 'def m(): return (' + chr(10) * 200 + 'n(), ' + '[0]*1000, ' * 200 + chr(10) * 70000 + 'q())'
def walk(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType): yield from walk(c)
for code in walk(compile(source, 'x', 'exec')):
    old = sys.version_info < (3, 10)
    lines = {}
    if old:
        starts = dict(dis.findlinestarts(code))
        line = code.co_firstlineno
        for at in range(0, len(code.co_code), 2):
            line = starts.get(at, line)
            lines[at] = line
    else:
        for start, end, line in code.co_lines():
            for at in range(start, end, 2): lines[at] = line or 0
    table = code.co_lnotab if old else code.co_linetable
    print(sys.version_info[1], code.co_firstlineno, table.hex() or '-', *(lines[at] for at in sorted(lines)))
)";

}  // namespace

TEST_CASE("lines of 3.9: pairs of bytes on and lines on") {
  const auto table = bytes({6, 1, 50, 5, 255, 0, 45, 127, 0, 73, 2, 0x100 - 3});
  CHECK(find_line(9, table, 10, -1) == 10);
  CHECK(find_line(9, table, 10, 0) == 10);
  CHECK(find_line(9, table, 10, 5) == 10);
  CHECK(find_line(9, table, 10, 6) == 11);
  CHECK(find_line(9, table, 10, 56) == 16);
  CHECK(find_line(9, table, 10, 355) == 16);
  CHECK(find_line(9, table, 10, 356) == 216);
  CHECK(find_line(9, table, 10, 358) == 213);
  CHECK(find_line(9, {}, 10, 4) == 10);
}

TEST_CASE("lines of 3.10: pairs of bytes and lines on, or none") {
  const auto table = bytes({4, 0, 6, 1, 2, 0x80, 4, 0x100 - 2, 254, 127, 2, 3});
  CHECK(find_line(10, table, 10, -2) == 10);
  CHECK(find_line(10, table, 10, 0) == 10);
  CHECK(find_line(10, table, 10, 4) == 11);
  CHECK(find_line(10, table, 10, 10) == 0);
  CHECK(find_line(10, table, 10, 12) == 9);
  CHECK(find_line(10, table, 10, 268) == 136);
  CHECK(find_line(10, table, 10, 270) == 139);
  CHECK(find_line(10, table, 10, 272) == 0);
}

TEST_CASE("lines of 3.11: entries of several kinds") {
  auto entry = [](int kind, int units) { return 0x80 | kind << 3 | (units - 1); };
  const auto table = bytes({entry(0, 1), 0, entry(11, 2), 4, 9, entry(14, 1), 2 << 1, 0, 1, 1,  // line, +1, +2
                            entry(15, 8), entry(13, 1), 0x40 | 1, 2,                            // none, -(2 << 5)
                            entry(12, 1), 0, 0, entry(9, 3), 0});
  CHECK(find_line(11, table, 100, -2) == 100);
  CHECK(find_line(11, table, 100, 0) == 100);
  CHECK(find_line(11, table, 100, 2) == 101);
  CHECK(find_line(11, table, 100, 4) == 101);
  CHECK(find_line(11, table, 100, 6) == 103);
  CHECK(find_line(11, table, 100, 8) == 0);
  CHECK(find_line(11, table, 100, 22) == 0);
  CHECK(find_line(11, table, 100, 24) == 39);
  CHECK(find_line(11, table, 100, 26) == 41);
  CHECK(find_line(11, table, 100, 32) == 41);
  CHECK(find_line(11, table, 100, 34) == 0);
}

TEST_CASE("line tables that break off anywhere do no harm") {
  const auto table = bytes({0xf8, 0xf0, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0xe8, 0x40});
  for (int minor = 9; minor <= 15; ++minor) {
    for (std::size_t size = 0; size <= table.size(); ++size) find_line(minor, std::span(table).first(size), 1, 1 << 20);
  }
}

TEST_CASE("lines are those that the interpreter itself has") {
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  for (const auto& python : pythons) {
    INFO(python);
    SpawnRequest request;
    request.argv = {python, "-c", kPrintTables};
    request.environment = current_environment();
    std::istringstream lines(output_of(std::move(request)));
    int tables = 0;
    for (std::string line; std::getline(lines, line); ++tables) {
      std::istringstream words(line);
      int minor = 0;
      int first_line = 0;
      std::string hex;
      words >> minor >> first_line >> hex;
      const auto table = hex == "-" ? std::vector<std::byte>() : from_hex(hex);
      std::int64_t instruction = 0;
      for (int expected = 0; words >> expected; instruction += 2) {
        INFO(hex.substr(0, 200) << " at " << instruction);
        REQUIRE(find_line(minor, table, first_line, instruction) == expected);
      }
    }
    CHECK(tables >= 6);
  }
}

TEST_CASE("texts of one, two and four bytes a character are UTF-8 then") {
  const auto layout = known_layout(12).value();
  CHECK(decode_text(layout, text_object(3, 1, true, {'a', 'b', 'c'})) == "abc");
  CHECK(decode_text(layout, text_object(2, 1, false, {'a', 0xe9})) == "aé");
  CHECK(decode_text(layout, text_object(2, 2, false, {0xe5, 0x65, 'b', 0})) == "日b");
  CHECK(decode_text(layout, text_object(1, 4, false, {0x00, 0xf6, 0x01, 0x00})) == "😀");
  CHECK(decode_text(layout, text_object(1, 2, false, {0xe9, 0xdc})) == "\xe9");          // surrogateescape
  CHECK(decode_text(layout, text_object(1, 2, false, {0x00, 0xd8})) == "\xef\xbf\xbd");  // half a pair
  CHECK(decode_text(layout, text_object(0, 1, true, {})) == "");
}

TEST_CASE("what is no text is none") {
  const auto layout = known_layout(12).value();
  CHECK_FALSE(decode_text(layout, text_object(4, 1, true, {'a', 'b', 'c'})).has_value());   // breaks off
  CHECK_FALSE(decode_text(layout, text_object(1, 1, true, {0xe9})).has_value());            // no ASCII
  CHECK_FALSE(decode_text(layout, text_object(1, 3, false, {1, 0, 0, 0})).has_value());     // no such kind
  CHECK_FALSE(decode_text(layout, text_object(1, 2, true, {1, 0})).has_value());            // ASCII has one byte
  CHECK_FALSE(decode_text(layout, text_object(1, 4, false, {0, 0, 0x11, 0})).has_value());  // beyond Unicode
  CHECK_FALSE(text_object_size(layout, text_object(5000, 1, true, {})).has_value());        // too long for a name
  CHECK_FALSE(text_object_size(layout, std::vector<std::byte>(39, std::byte{0xff})).has_value());
  CHECK_FALSE(decode_text(layout, std::vector<std::byte>(100)).has_value());
  CHECK(text_object_size(layout, text_object(3, 2, false, {})) == 56 + 6);
}

TEST_CASE("a table of offsets that makes no sense is none") {
  std::vector<std::byte> table(kMostDebugOffsets);
  auto put = [&](std::size_t index, std::uint64_t value) {
    std::memcpy(table.data() + 8 * index, &value, sizeof value);
  };
  CHECK_FALSE(parse_debug_offsets(table).has_value());
  std::memcpy(table.data(), "xdebugpy", 8);
  put(1, 0x030d00f0);
  CHECK_FALSE(parse_debug_offsets(table).has_value());  // all offsets are zero
  for (std::size_t i = 2; i < table.size() / 8; ++i) put(i, ~0ULL);
  CHECK_FALSE(parse_debug_offsets(table).has_value());
  put(1, 0x031000f0);  // 3.16: known to be one, and no more
  auto later = parse_debug_offsets(table);
  REQUIRE(later.has_value());
  CHECK(later->minor == 16);
  CHECK(later->type_name == 0);
  CHECK_FALSE(parse_debug_offsets(std::span(table).first(100)).has_value());
}

TEST_CASE("layouts are known of 3.9 to 3.12") {
  for (int minor = 9; minor <= 12; ++minor) CHECK(known_layout(minor).value().minor == minor);
  CHECK_FALSE(known_layout(8).has_value());
  CHECK_FALSE(known_layout(13).has_value());
}

}  // namespace python_layout_test
