#include "training/data/data_events.hpp"

#include <boost/json/parse.hpp>
#include <fstream>
#include <map>

#include "catch.hpp"
#include "training/heard_events.hpp"

namespace data_events_test {

using namespace taas;
namespace json = boost::json;

namespace {

std::map<std::string, json::value> reports() {
  std::map<std::string, json::value> by_kind;
  std::ifstream file(TAAS_CONTRACT "/reports.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto report = json::parse(line);
    by_kind.emplace(report.at("kind").as_string(), report);
  }
  return by_kind;
}

}  // namespace

TEST_CASE("reports have the form that the launcher reads") {
  test::HeardEvents launcher;
  report_data({.rank = 3,
               .loader = "train",
               .samples = 10,
               .batches = 2,
               .bytes = 3'000'000'000,
               .seconds = 1.5,
               .waited = 0.25,
               .buffered = 4,
               .workers = 5,
               .hedged = 6,
               .done = true});
  CHECK(launcher.hear() == reports().at("data"));
  remark_on_data("four words for people");
  CHECK(launcher.hear() == reports().at("remark"));
  CHECK(report_prepared({.worker = 1, .batches = 7, .bytes = 8, .done = true}));
  CHECK(launcher.hear() == reports().at("prepared"));
}

}  // namespace data_events_test
