#include "base/json/json.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>

namespace taas {

namespace {

constexpr std::size_t kDeepest = 16;

}  // namespace

Result<boost::json::value> parse_json(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = kDeepest;
  options.allow_invalid_utf8 = true;
  boost::system::error_code status;
  auto value = boost::json::parse(text, status, {}, options);
  if (status) return protocol_error(fmt::format("not JSON as expected: {}", status.message()));
  return value;
}

}  // namespace taas
