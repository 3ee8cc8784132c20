#include "node/data/data_reports.hpp"

#include "base/files.hpp"
#include "base/text.hpp"
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

/// What senders of both languages write, too.
std::string report(const std::string& kind) {
  auto lines = read_file(TAAS_CONTRACT "/reports.jsonl").value();
  for (auto line : split(lines, '\n')) {
    if (contains(line, "\"" + kind + "\"")) return std::string(line);
  }
  return {};
}

}  // namespace

TEST_CASE("a rank's progress") {
  auto told = read<run::DataProgress>(report("data"));
  CHECK(told.rank == Rank{3});
  CHECK(told.loader == "train");
  CHECK(told.samples == 10);
  CHECK(told.batches == 2);
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
  auto prepared = read<run::DataPrepared>(report("prepared"));
  CHECK((prepared.worker == 1 && prepared.batches == 7 && prepared.bytes == 8 && prepared.done));
  auto work = read<run::DataWork>(report("work"));
  CHECK((work.worker == 2 && work.batches == 3 && work.busy == 0.5 && work.seconds == 2));
  CHECK(read<run::Remark>(report("remark")).text == "four words for people");
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
