#include "node/data/data_reports.hpp"

#include <boost/json/object.hpp>
#include <cmath>

#include "base/json/json.hpp"

namespace taas::node {
namespace {

namespace json = boost::json;

double number(const json::object& report, const char* name) {
  const auto* value = report.if_contains(name);
  if (value == nullptr || !value->is_number()) return 0;
  auto read = value->to_number<double>();
  return std::isfinite(read) && read > 0 ? read : 0;
}

/// What no count of ours exceeds.
std::int64_t count(const json::object& report, const char* name) {
  return static_cast<std::int64_t>(std::min(number(report, name), 9e18));
}

int small_count(const json::object& report, const char* name) {
  return static_cast<int>(std::min(number(report, name), 1e9));
}

std::string text(const json::object& report, const char* name) {
  constexpr std::size_t kLongest = 1000;
  const auto* value = report.if_contains(name);
  if (value == nullptr || !value->is_string()) return "";
  std::string read(value->get_string());
  for (char& letter : read) letter = static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  return read.substr(0, kLongest);
}

bool flag(const json::object& report, const char* name) {
  const auto* value = report.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

run::DataProgress progress(const json::object& report, Instant at) {
  run::DataProgress told;
  told.rank = Rank{small_count(report, "rank")};
  told.loader = text(report, "loader");
  told.samples = count(report, "samples");
  told.batches = count(report, "batches");
  told.bytes = count(report, "bytes");
  told.seconds = number(report, "seconds");
  told.waited = number(report, "waited");
  told.buffered = small_count(report, "buffered");
  told.workers = small_count(report, "workers");
  told.hedged = count(report, "hedged");
  told.done = flag(report, "done");
  told.at = at;
  return told;
}

}  // namespace

Result<run::AgentMessage> parse_data_report(std::string_view bytes, Instant at) {
  auto value = parse_json(bytes);
  if (!value) return value.error();
  const auto* report = value->if_object();
  if (report == nullptr) return protocol_error("a report that is not a JSON object");
  auto kind = text(*report, "kind");
  int worker = small_count(*report, "worker");
  if (kind == "data") return run::AgentMessage(progress(*report, at));
  if (kind == "prepared") {
    return run::AgentMessage(
        run::DataPrepared{worker, count(*report, "batches"), count(*report, "bytes"), flag(*report, "done"), at});
  }
  if (kind == "work") {
    return run::AgentMessage(
        run::DataWork{worker, count(*report, "batches"), number(*report, "busy"), number(*report, "seconds"), at});
  }
  if (kind == "remark") return run::AgentMessage(run::Remark{text(*report, "text")});
  return protocol_error("a report of a kind that is not known here");
}

}  // namespace taas::node
