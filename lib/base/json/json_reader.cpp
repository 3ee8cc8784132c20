#include "base/json/json_reader.hpp"

#include <fmt/format.h>

namespace taas {

bool JsonReader::read(const Json& json, bool& value) {
  if (!json.is_bool()) return fail("not true or false");
  value = json.get_bool();
  return true;
}

bool JsonReader::read(const Json& json, std::string& text) {
  const auto* string = json.if_string();
  if (!string) return fail("not a text");
  text.assign(string->data(), string->size());
  return true;
}

bool JsonReader::read(const Json& json, Instant& at) {
  Duration since_start{};
  if (!read(json, since_start)) return false;
  at = Instant(since_start);
  return true;
}

Error JsonReader::error() const {
  if (path_.empty()) return protocol_error(reason_);
  return protocol_error(fmt::format("{}: {}", std::string_view(path_).substr(path_.front() == '.'), reason_));
}

bool JsonReader::fail(std::string_view reason) {
  reason_ = reason;
  return false;
}

bool JsonReader::fail_within(std::string_view member) {
  path_ = fmt::format(".{}{}", member, path_);
  return false;
}

bool JsonReader::fail_within_element(std::size_t index) {
  path_ = fmt::format("[{}]{}", index, path_);
  return false;
}

}  // namespace taas
