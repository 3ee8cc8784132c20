#include "run/events/flight_record.hpp"

#include "base/files.hpp"
#include "catch.hpp"

namespace flight_record_test {

using namespace taas;
using namespace taas::run;

namespace {

std::vector<CollectiveGroup> recorded(const std::string& name, std::size_t most = 10) {
  auto bytes = read_file(std::string(TAAS_FLIGHT_RECORDS) + "/" + name);
  REQUIRE(bytes.has_value());
  auto groups = read_flight_record(*bytes, most);
  REQUIRE(groups.has_value());
  return *groups;
}

/// A string in a pickle.
std::string text(const std::string& value) {
  std::string size;
  for (int i = 0; i < 4; ++i) size += static_cast<char>(value.size() >> (8 * i));
  return "X" + size + value;
}

}  // namespace

TEST_CASE("what three versions of torch have recorded") {
  const std::string version = GENERATE("2.11.0", "2.13.0", "2.15.0");
  auto groups = recorded("missing-" + version + "-0");
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].description == "default_pg");
  REQUIRE(groups[0].calls.size() == 3);
  const auto& last = groups[0].calls.back();
  CHECK(last.number == 3);
  CHECK(last.operation == "all_reduce");
  CHECK(last.shape == "[262144] float32");
  CHECK(last.bytes == 1 << 20);
  CHECK(last.where.starts_with("train.py:"));
  CHECK(last.blocking);
  CHECK(last.timeout_ms == 2000);
  CHECK(recorded("missing-" + version + "-2").at(0).calls.size() == 2);
}

TEST_CASE("of each group only the last calls are kept") {
  auto groups = recorded("operation-2.15.0-2", 2);
  REQUIRE(groups.size() == 1);
  REQUIRE(groups[0].calls.size() == 2);
  CHECK(groups[0].calls[0].operation == "all_reduce");
  CHECK(groups[0].calls[1].operation == "broadcast");
}

TEST_CASE("a call that a GPU has begun is told from one that waits") {
  const auto call = [](const std::string& state, const std::string& started) {
    return "}(" + text("process_group") + "(" + text("0") + "t" + text("profiling_name") + text("nccl:all_reduce") +
           text("state") + text(state) + text("time_discovered_started_ns") + started + "u";
  };
  const std::string moment("\x8a\x08\x01\x02\x03\x04\x05\x06\x07\x08", 10);
  const auto record = "\x80\x02}(" + text("entries") + "](" + call("completed", moment) + call("started", moment) +
                      call("scheduled", "N") + "eu.";
  auto groups = read_flight_record(record, 10);
  REQUIRE(groups.has_value());
  REQUIRE(groups->size() == 1);
  const auto& calls = groups->front().calls;
  REQUIRE(calls.size() == 3);
  CHECK((calls[0].started && calls[0].completed));
  CHECK((calls[1].started && !calls[1].completed));
  CHECK_FALSE((calls[2].started || calls[2].completed));
}

TEST_CASE("what goes to the coordinator of a made-up record is small") {
  std::string entries;
  std::string configured;
  for (int i = 0; i < 1000; ++i) {
    const auto group = text(std::to_string(i));
    entries += "}(" + text("process_group") + group + "h\x02\x86" + text("profiling_name") + "h\x02u";
    configured += group + "h\x03";
  }
  std::string ranks;
  for (int i = 0; i < 32'000; ++i) ranks += "1,";
  const auto record = "\x80\x02}(" + text("long") + text(std::string(10'000, 'x')) + "q\x02" + text("config") + "}" +
                      text("ranks") + text(ranks) + "sq\x03" + text("entries") + "](" + entries + "e" +
                      text("pg_config") + "}(" + configured + "uu.";
  auto groups = read_flight_record(record, 4);
  REQUIRE(groups.has_value());
  CHECK(groups->size() >= 100);
  CHECK(groups->size() < 1000);
  std::size_t members = 0;
  for (const auto& group : *groups) {
    members += group.members.size();
    CHECK(group.description.size() <= 1024);
    CHECK(group.calls.at(0).operation.size() <= 1024);
  }
  CHECK(members > 0);
  CHECK(members <= 1 << 20);
}

TEST_CASE("what is no record is nothing") {
  CHECK(read_flight_record("", 4) == std::nullopt);
  CHECK(read_flight_record("\x80\x02}.", 4) == std::nullopt);
  CHECK(read_flight_record("{\"entries\": []}", 4) == std::nullopt);
}

}  // namespace flight_record_test
