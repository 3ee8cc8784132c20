#include "node/data/loader_watch.hpp"

#include "catch.hpp"

namespace loader_watch_test {

using namespace taas;
using node::DataWorkerEnd;
using node::LoaderWatch;

namespace {

constexpr std::int64_t kBuffer = 1'000'000;

run::DataPrepared prepared(int worker, bool done, Instant at = Instant{}) { return {worker, 5, 100, done, at}; }

DataWorkerEnd end_of(int worker, bool killed, std::string last_line = "") {
  return {worker, "data worker " + std::to_string(worker), killed, "ended with code 1", std::move(last_line), true, {}};
}

}  // namespace

TEST_CASE("a loader is prepared when all workers are done, and that is told once") {
  LoaderWatch watch("load.py:train");
  watch.begin(2, kBuffer);
  CHECK(watch.update(prepared(0, true)));
  CHECK_FALSE(watch.check());
  CHECK(watch.update(prepared(1, true)));
  const auto told = watch.check();
  REQUIRE(told);
  CHECK(std::holds_alternative<run::LoaderPrepared>(*told));
  CHECK_FALSE(watch.check());
  CHECK(watch.outcome());
}

TEST_CASE("a worker that ends before it has prepared anything has failed, in its own last words") {
  LoaderWatch watch("load.py:train");
  watch.begin(1, kBuffer);
  SECTION("with words") {
    const auto told = watch.ended(end_of(0, false, "NameError: name 'x' is not defined"));
    REQUIRE(told);
    CHECK(std::get<run::LoaderFailed>(*told).message == "--loader load.py:train: NameError: name 'x' is not defined");
  }
  SECTION("without") {
    const auto told = watch.ended(end_of(0, false));
    REQUIRE(told);
    CHECK(std::get<run::LoaderFailed>(*told).message == "--loader load.py:train: data worker 0 ended with code 1");
  }
  CHECK(watch.failed());
  CHECK_FALSE(watch.ended(end_of(0, false)));  // once
  CHECK(watch.update(prepared(0, true)));
  CHECK_FALSE(watch.check());
}

TEST_CASE("a worker that was killed, or had begun, is followed by another") {
  LoaderWatch watch("load.py:train");
  watch.begin(1, kBuffer);
  CHECK_FALSE(watch.ended(end_of(0, true)));
  CHECK(watch.update(prepared(0, false, Instant{} + std::chrono::seconds(9))));
  CHECK_FALSE(watch.ended(end_of(0, false)));
  CHECK_FALSE(watch.failed());
  CHECK_FALSE(watch.check());  // what it had made is gone
}

TEST_CASE("without --loader nothing is waited for") {
  LoaderWatch watch("");
  watch.begin(1, kBuffer);
  CHECK(watch.update(prepared(0, true)));
  CHECK_FALSE(watch.check());
  CHECK_FALSE(watch.ended(end_of(0, false)));
}

TEST_CASE("progress is news once a second and worker, and always at its end") {
  LoaderWatch watch("load.py:train");
  watch.begin(2, kBuffer);
  const auto begin = Instant{} + std::chrono::seconds(100);
  CHECK(watch.update(prepared(0, false, begin)));
  CHECK_FALSE(watch.update(prepared(0, false, begin + std::chrono::milliseconds(999))));
  CHECK(watch.update(prepared(1, false, begin + std::chrono::milliseconds(999))));
  CHECK(watch.update(prepared(0, false, begin + std::chrono::seconds(1))));
  CHECK(watch.update(prepared(0, true, begin + std::chrono::milliseconds(1001))));
}

}  // namespace loader_watch_test
