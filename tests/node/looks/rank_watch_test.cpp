#include "node/looks/rank_watch.hpp"

#include "catch.hpp"

namespace rank_watch_test {

using namespace taas;
using namespace taas::node;
using Change = RankMotionSensor::Change;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

Instant at(int interval) { return Instant(std::chrono::seconds(100)) + interval * RankMotionSensor::kInterval; }

}  // namespace

TEST_CASE("a rank stands still after two quiet intervals, since the first of them began") {
  RankMotionSensor sensor;
  CHECK(sensor.add({kSecond, 0, 100}, at(0)) == Change::kNone);
  CHECK(sensor.add({5 * kSecond, 0, 900}, at(1)) == Change::kNone);  // it moves
  CHECK(sensor.add({5 * kSecond, 0, 901}, at(2)) == Change::kNone);
  CHECK(sensor.add({5 * kSecond, 0, 901}, at(3)) == Change::kStill);
  CHECK(sensor.since() == at(1));
  CHECK(sensor.add({5 * kSecond, 0, 902}, at(4)) == Change::kNone);
  CHECK(sensor.since() == at(1));
  CHECK(sensor.add({6 * kSecond, 0, 950}, at(5)) == Change::kMoves);
  CHECK(sensor.since() == at(4));
  CHECK(sensor.add({9 * kSecond, 0, 999}, at(6)) == Change::kNone);
}

TEST_CASE("what polls each second, computes, or waits for a processor moves") {
  for (const RunTimes& each : {RunTimes{0, 0, 5}, RunTimes{kSecond, 0, 1}, RunTimes{0, kSecond, 1}}) {
    RankMotionSensor sensor;
    for (std::uint64_t i = 0; i < 6; ++i) {
      CHECK(sensor.add({i * each.run_ns, i * each.queued_ns, i * each.switches}, at(static_cast<int>(i))) ==
            Change::kNone);
    }
  }
}

TEST_CASE("one quiet interval between others is none") {
  RankMotionSensor sensor;
  std::uint64_t switches = 0;
  for (int i = 0; i < 9; ++i) CHECK(sensor.add({0, 0, switches += i % 2 == 0 ? 50 : 0}, at(i)) == Change::kNone);
}

}  // namespace rank_watch_test
