#include "data/schedule/workers.hpp"

#include "catch.hpp"

namespace workers_test {

using namespace taas;
using namespace taas::data;
using namespace std::chrono_literals;

namespace {

Instant at(Duration after) { return Instant{} + after; }

/// A worker that has made one batch in `took`.
void make_one(Workers& workers, WorkerIndex index, Duration took) {
  workers.come_up(index, at(0s));
  auto& worker = workers.at(index);
  worker.send(100, at(0s));
  worker.begin(100, at(0s));
  worker.end(100, at(took));
  worker.finish(at(0s), {}, at(took));
}

}  // namespace

TEST_CASE("a mean follows faster samples at once and slower ones by and by") {
  Mean mean;
  CHECK_FALSE(mean.known());
  mean.add(100ms);
  mean.add(10s);  // counts as 300 ms
  CHECK(mean.value() == 140ms);
  mean.add(20ms);
  CHECK(mean.value() == 80ms);
}

TEST_CASE("a worker has room for two tasks, and for more where tasks are short") {
  const SchedulePolicy policy;
  Workers workers(policy);
  workers.come_up(0, at(0s));
  auto& worker = workers.at(0);
  worker.send(1, at(0s));
  CHECK(workers.has_room(worker));
  worker.send(2, at(0s));
  CHECK_FALSE(workers.has_room(worker));
  worker.begin(1, at(0s));
  worker.end(1, at(500us));
  worker.finish(at(0s), {}, at(500us));
  for (Attempt attempt : {3, 4, 5}) {
    CHECK(workers.has_room(worker));
    worker.send(attempt, at(1ms));
  }
  CHECK_FALSE(workers.has_room(worker));
  CHECK(worker.served() == 5);
}

TEST_CASE("what was withdrawn while it ran keeps a worker busy until it says something") {
  Worker worker;
  worker.send(1, at(0s));
  worker.begin(1, at(1s));
  worker.end(1, at(3s));
  worker.withdraw(1, at(1s), at(3s));
  CHECK(worker.is_idle());
  CHECK(worker.is_stale());
  CHECK(worker.making().value() == 2s);
  worker.answer(1);
  CHECK_FALSE(worker.is_stale());
}

TEST_CASE("a task is late after twice what the idle worker needs, but not within 50 ms") {
  const SchedulePolicy policy;
  Workers workers(policy);
  make_one(workers, 0, 1s);
  make_one(workers, 1, 1ms);
  workers.come_up(2, at(0s));
  auto& busy = workers.at(3);
  busy.send(7, at(5s));
  busy.begin(7, at(5s));
  CHECK(workers.late_at(busy, workers[0]) == at(7s));
  CHECK(workers.late_at(busy, workers[1]) == at(5050ms));
  CHECK(workers.late_at(busy, workers[2]) == at(5500ms));
}

TEST_CASE("a worker is too slow when the others make the whole window before it makes its next") {
  const SchedulePolicy policy;
  Workers workers(policy);
  make_one(workers, 0, 10ms);
  make_one(workers, 1, 100ms);
  const Pace pace(policy, workers, at(100ms));
  CHECK(pace.anyone_rested());
  CHECK(pace.is_too_slow(workers[1], 5));
  CHECK_FALSE(pace.is_too_slow(workers[1], 20));
  CHECK_FALSE(pace.is_too_slow(workers[0], 1));
  CHECK_FALSE(Pace(policy, workers, at(2s)).is_too_slow(workers[1], 5));  // it is tried again
}

}  // namespace workers_test
