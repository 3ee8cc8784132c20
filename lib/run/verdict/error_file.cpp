#include "run/verdict/error_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <sstream>

namespace taas::run {
namespace {

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string_view text_of(const boost::json::value* value) {
  if (value == nullptr || !value->is_string()) return {};
  return value->get_string();
}

const boost::json::value* member(const boost::json::value* value, std::string_view name) {
  if (value == nullptr || !value->is_object()) return nullptr;
  return value->get_object().if_contains(name);
}

}  // namespace

/// Both forms: {"message": {"message": …, "extraInfo": {"py_callstack": …}}} and {"message": "…"}.
std::optional<RecordedError> parse_error_file(std::string_view text) {
  boost::system::error_code failed;
  auto document = boost::json::parse(text, failed);
  if (failed) return std::nullopt;
  const auto* outer = member(&document, "message");
  const auto* inner = member(outer, "message");
  auto message = text_of(inner != nullptr ? inner : outer);
  if (message.empty()) return std::nullopt;
  return RecordedError{std::string(message), split_lines(text_of(member(member(outer, "extraInfo"), "py_callstack")))};
}

std::string print_error_file(const Verdict& verdict, std::int64_t now) {
  boost::system::error_code failed;
  auto document = boost::json::parse(verdict.error_file, failed);
  const auto* recorded = failed ? nullptr : member(&document, "message");
  if (recorded == nullptr || !recorded->is_object()) {
    auto message = recorded == nullptr ? verdict.summary : std::string(text_of(recorded));
    boost::json::object more{{"py_callstack", fmt::format("{}", fmt::join(verdict.detail, "\n"))},
                             {"timestamp", std::to_string(now)}};
    boost::json::object words{{"message", message}, {"extraInfo", std::move(more)}};
    document = boost::json::object{{"message", std::move(words)}};
  }
  document.at("message").as_object()["errorCode"] = verdict.exit_code;
  return boost::json::serialize(document);
}

}  // namespace taas::run
