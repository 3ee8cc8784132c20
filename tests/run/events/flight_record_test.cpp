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

TEST_CASE("what is no record is nothing") {
  CHECK(read_flight_record("", 4) == std::nullopt);
  CHECK(read_flight_record("\x80\x02}.", 4) == std::nullopt);
  CHECK(read_flight_record("{\"entries\": []}", 4) == std::nullopt);
}

}  // namespace flight_record_test
