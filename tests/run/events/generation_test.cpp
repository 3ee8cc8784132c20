#include "run/events/generation.hpp"

#include <cerrno>

#include "catch.hpp"
#include "run/scenario.hpp"

namespace generation_test {

using namespace taas;
using namespace taas::run;

namespace {

const Generation kFirst{0};

RankExited exit_of(int rank, ExitStatus status = {}) { return {kFirst, Rank{rank}, status, {}, at_ms(1)}; }

}  // namespace

TEST_CASE("a generation is over when no rank lives and none will") {
  GenerationRecord record(kFirst, 3);
  CHECK_FALSE(record.over());
  record.spawned({kFirst, Rank{0}, 1, at_ms(0)});
  CHECK(record.living() == ranks({0}));
  record.spawn_failed({kFirst, Rank{1}, ENOENT, "", at_ms(0)});
  CHECK(record.in(RankRecord::Phase::kAbsent) == ranks({2}));
  CHECK_FALSE(record.over());
  record.exited(exit_of(0));
  CHECK(record.over());
  CHECK(record.any_failed());
}

TEST_CASE("an end counts once, also when the start was not told") {
  GenerationRecord record(kFirst, 2);
  CHECK(record.exited(exit_of(0, {3})));
  CHECK_FALSE(record.exited(exit_of(0)));
  CHECK_FALSE(record.spawned({kFirst, Rank{0}, 1, at_ms(2)}));
  CHECK_FALSE(record.spawn_failed({kFirst, Rank{0}, ENOENT, "", at_ms(2)}));
  CHECK(record.rank(Rank{0}).status.code == 3);
}

TEST_CASE("what belongs to nobody is refused") {
  GenerationRecord record(kFirst, 2);
  CHECK_FALSE(record.spawned({Generation{1}, Rank{0}, 1, at_ms(0)}));
  CHECK_FALSE(record.spawned({kFirst, Rank{2}, 1, at_ms(0)}));
  CHECK_FALSE(record.joined({kFirst, Rank{-1}, at_ms(0)}));
}

TEST_CASE("an absent rank that is started all the same lives") {
  GenerationRecord record(kFirst, 2);
  record.spawn_failed({kFirst, Rank{0}, ENOENT, "", at_ms(0)});
  CHECK(record.over());
  CHECK(record.spawned({kFirst, Rank{1}, 1, at_ms(1)}));
  CHECK_FALSE(record.over());
}

TEST_CASE("ends after a stop and after a kill are told apart") {
  auto record = all_living(3);
  record.exited(exit_of(0));
  record.stop(SIGTERM, at_ms(1));
  record.stop(SIGINT, at_ms(2));
  record.exited(exit_of(1));
  record.kill(at_ms(3));
  record.gone(at_ms(4));
  CHECK(record.stop_signal() == SIGTERM);
  CHECK(record.stopped_at() == at_ms(1));
  CHECK_FALSE(record.rank(Rank{0}).ended_after_stop);
  CHECK(record.rank(Rank{1}).ended_after_stop);
  CHECK_FALSE(record.rank(Rank{1}).ended_after_kill);
  CHECK(record.rank(Rank{2}).ended_after_kill);
  CHECK(record.over());
}

TEST_CASE("who has joined is known, once each") {
  auto record = all_living(3);
  CHECK(record.joined({kFirst, Rank{1}, at_ms(0)}));
  CHECK_FALSE(record.joined({kFirst, Rank{1}, at_ms(1)}));
  CHECK(record.not_joined() == ranks({0, 2}));
}

TEST_CASE("what ended before the stop did so, even if that is known only later") {
  auto record = all_living(3);
  record.stop(SIGTERM, at_ms(100));
  record.exited({Generation{0}, Rank{0}, {3}, {}, at_ms(95)});
  record.exited({Generation{0}, Rank{1}, {0, SIGTERM}, {}, at_ms(95)});
  CHECK_FALSE(record.rank(Rank{0}).ended_after_stop);
  CHECK(record.rank(Rank{1}).ended_after_stop);
}

}  // namespace generation_test
