#include "run/messages/shorten.hpp"

#include "catch.hpp"
#include "run/messages/wire.hpp"

namespace shorten_test {

using namespace taas;
using namespace taas::run;

namespace {

constexpr std::size_t kShort = 1 << 20;

std::string long_text() { return std::string(30 << 20, 'x'); }

}  // namespace

TEST_CASE("what matters of a message with a text that is too long arrives") {
  RankExited exited{Generation{2}, Rank{5}, {}, {}, {}};
  exited.status.code = 7;
  exited.evidence.error_file = long_text();
  exited.evidence.last_lines = {"first", long_text(), "last"};
  const auto text = encode(shorten(exited));
  CHECK(text.size() < kShort);
  const auto back = std::get<RankExited>(decode_agent_message(text).value());
  CHECK(back.rank == Rank{5});
  CHECK(back.status.code == 7);
  CHECK(back.evidence.last_lines.size() == 3);
  CHECK(back.evidence.last_lines.back() == "last");
}

TEST_CASE("every text of every message is cut, and short ones stay as they are") {
  CHECK(encode(shorten(Remark{long_text()})).size() < kShort);
  CHECK(encode(shorten(OutputSettled{long_text(), {}, 3})).size() < kShort);
  CHECK(encode(shorten(LoaderFailed{long_text()})).size() < kShort);
  CHECK(encode(shorten(Output{{{Rank{1}, false, false, long_text(), {}, false}}})).size() < kShort);
  CHECK(encode(shorten(Remark{"a word"})) == encode(Remark{"a word"}));
}

}  // namespace shorten_test
