#include "node/data/data_reports.hpp"

#include "catch.hpp"

namespace data_reports_test {

using namespace taas;
using namespace taas::node;

namespace {

const Instant kNow{std::chrono::seconds(7)};

template <class Message>
Message read(const std::string& text) {
  auto message = parse_data_report(text, kNow);
  REQUIRE(message.has_value());
  REQUIRE(std::holds_alternative<Message>(*message));
  return std::get<Message>(*message);
}

}  // namespace

TEST_CASE("a rank's progress") {
  auto told = read<run::DataProgress>(
      R"({"kind":"data","rank":3,"loader":"train","samples":10,"batches":2,"bytes":3e9,"seconds":1.5,"waited":0.25,)"
      R"("buffered":4,"workers":5,"hedged":6,"done":true})");
  CHECK(told.rank == Rank{3});
  CHECK(told.loader == "train");
  CHECK(told.samples == 10);
  CHECK(told.bytes == 3000000000);
  CHECK(told.seconds == 1.5);
  CHECK(told.waited == 0.25);
  CHECK(told.buffered == 4);
  CHECK(told.workers == 5);
  CHECK(told.hedged == 6);
  CHECK(told.done);
  CHECK(told.at == kNow);
}

TEST_CASE("a worker's preparation and work, and remarks") {
  auto prepared = read<run::DataPrepared>(R"({"kind":"prepared","worker":1,"batches":7,"bytes":8,"done":true})");
  CHECK((prepared.worker == 1 && prepared.batches == 7 && prepared.bytes == 8 && prepared.done));
  auto work = read<run::DataWork>(R"({"kind":"work","worker":2,"batches":3,"busy":0.5,"seconds":2})");
  CHECK((work.worker == 2 && work.busy == 0.5 && work.seconds == 2));
  CHECK(read<run::Remark>(R"({"kind":"remark","text":"two\nlines"})").text == "two lines");
}

TEST_CASE("what is missing or absurd counts as nothing") {
  auto told = read<run::DataProgress>(R"({"kind":"data","samples":-5,"bytes":1e300,"rank":"x","loader":7,"done":1})");
  CHECK(told.samples == 0);
  CHECK(told.bytes > 0);
  CHECK(told.rank == Rank{0});
  CHECK(told.loader.empty());
  CHECK_FALSE(told.done);
}

TEST_CASE("anything else is no report") {
  for (auto text : {"", "garbage", "[]", "7", "{}", R"({"kind":"other"})", R"({"kind":7})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_data_report(text, kNow).has_value());
  }
}

}  // namespace data_reports_test
