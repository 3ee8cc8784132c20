#include "base/json/published_json.hpp"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <cmath>

namespace taas {
namespace {

namespace json = boost::json;

/// "0.000636", "30", "-1".
void append_number(double number, std::string& text) {
  if (!std::isfinite(number)) {
    text += "null";
    return;
  }
  auto digits = fmt::format("{:.6f}", number);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  text += digits == "-0" ? "0" : digits;
}

void append(const json::value& value, std::string& text) {
  if (const auto* object = value.if_object()) {
    text += '{';
    for (const auto& [name, member] : *object) {
      if (!text.ends_with('{')) text += ',';
      text += json::serialize(json::string(name)) + ":";
      append(member, text);
    }
    text += '}';
  } else if (const auto* array = value.if_array()) {
    text += '[';
    for (std::size_t i = 0; i < array->size(); ++i) {
      if (i > 0) text += ',';
      append((*array)[i], text);
    }
    text += ']';
  } else if (value.is_double()) {
    append_number(value.get_double(), text);
  } else {
    text += json::serialize(value);
  }
}

}  // namespace

std::string published_text(const json::value& json) {
  std::string text;
  append(json, text);
  return text;
}

}  // namespace taas
