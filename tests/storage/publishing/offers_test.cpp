// Which closes count, as a table of what happens and what is believed then.
#include "storage/publishing/offers.hpp"

#include "catch.hpp"

namespace offers_test {

using namespace taas;
using namespace taas::storage;
using namespace std::chrono_literals;

namespace {

using Names = std::vector<std::string>;

Instant at(Duration since_begin) { return Instant{} + since_begin; }

}  // namespace

TEST_CASE("a close counts once its writers have gone on for a while") {
  Offers offers;
  offers.closed("a", at(0ms));
  CHECK(offers.take(WritersState::kWell, at(399ms)).empty());
  CHECK(offers.ask_again(WritersState::kWell, at(0ms)) == at(400ms));
  CHECK(offers.take(WritersState::kWell, at(400ms)) == Names{"a"});
  CHECK(offers.take(WritersState::kWell, at(500ms)).empty());
  CHECK_FALSE(offers.ask_again(WritersState::kWell, at(500ms)));
}

TEST_CASE("a file that is written again and again counts in the end") {
  Offers offers;
  Names whole;
  int times = 0;
  for (; whole.empty() && times < 20; ++times) {
    const auto now = at(times * 250ms);
    whole = offers.take(WritersState::kWell, now);
    offers.closed("log", now);
  }
  CHECK(whole == Names{"log"});
  CHECK(times < 10);
}

TEST_CASE("while it is not known that writers are well, nothing counts") {
  Offers offers;
  offers.closed("a", at(0ms));
  for (auto writers : {WritersState::kUncertain, WritersState::kRaised, WritersState::kBadly, WritersState::kKilled}) {
    CHECK(offers.take(writers, at(1s)).empty());
  }
  CHECK(offers.take(WritersState::kWell, at(1s)) == Names{"a"});  // whoever raised has caught it
}

TEST_CASE("what is renamed into place is not to be judged") {
  Offers offers;
  offers.closed("a", at(0ms));
  offers.placed("a");
  CHECK(offers.take(WritersState::kWell, at(1s)).empty());
}

TEST_CASE("what was closed in the last moment before a stop is doubtful, and what was closed well before is not") {
  Offers offers;
  offers.closed("before", at(0ms));
  offers.closed("last", at(300ms));
  CHECK(offers.take(WritersState::kWell, at(450ms)) == Names{"before"});
  offers.stop({}, at(450ms));
  CHECK(offers.take(WritersState::kWell, at(10s)).empty());
  CHECK_FALSE(offers.was_cut_off("last"));  // a good end says that it was whole
}

TEST_CASE("what is open at a stop is doubtful when it is closed; what is begun then counts at its close") {
  Offers offers;
  offers.stop({false, {{"open", 1}}}, at(0ms));
  offers.closed("open", at(1ms));
  offers.closed("new", at(2ms));
  CHECK(offers.take(WritersState::kWell, at(2ms)) == Names{"new"});
  CHECK(offers.was_cut_off("open"));
  SECTION("also where the same file is written once more") {
    offers.closed("open", at(900ms));
    CHECK(offers.take(WritersState::kWell, at(900ms)) == Names{"open"});
    CHECK_FALSE(offers.was_cut_off("open"));
  }
}

TEST_CASE("a program that goes on after the signal closes what it had open in its own time") {
  Offers offers;
  offers.stop({false, {{"slow", 1}, {"never", 1}}}, at(0ms));
  offers.closed("slow", at(700ms));
  CHECK(offers.take(WritersState::kWell, at(2s)).empty());
  CHECK_FALSE(offers.was_cut_off("slow"));
  CHECK(offers.was_cut_off("never"));
}

TEST_CASE("what is begun after a stop counts also where its writer then ends by itself, and not where it is killed") {
  Offers offers;
  offers.stop({}, at(0ms));
  offers.closed("a", at(1s));
  CHECK(offers.take(WritersState::kUncertain, at(1s)).empty());
  CHECK(offers.ask_again(WritersState::kUncertain, at(1s)).has_value());
  CHECK(offers.take(WritersState::kKilled, at(1s)).empty());
  CHECK(offers.take(WritersState::kBadly, at(1s)) == Names{"a"});
}

TEST_CASE("what is closed after SIGKILL is doubtful") {
  Offers offers;
  offers.stop({}, at(0ms));
  offers.stop({true, {}}, at(1s));
  offers.closed("a", at(1s));
  offers.found("b", at(1s));
  CHECK(offers.take(WritersState::kBadly, at(2s)).empty());
}

TEST_CASE("the next generation begins without a past") {
  Offers offers;
  offers.closed("old", at(0ms));
  offers.stop({true, {{"a", 1}}}, at(0ms));
  offers.begin();
  offers.closed("a", at(1s));
  CHECK(offers.take(WritersState::kWell, at(2s)) == Names{"a"});
}

}  // namespace offers_test
