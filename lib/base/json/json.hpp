#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/json/json_reader.hpp"
#include "base/json/json_writer.hpp"

namespace taas {

// One definition of a struct (Boost.Describe) serves every place that stores or sends it. A described struct is an
// object with a member for each of its members, inherited ones too, under the same names; enums are their described
// names; an optional without value is null; maps are objects, pairs are arrays of two; a duration is a count of its
// unit, an Instant one of nanoseconds, an Id a number. Arguments, variables and folders may be any bytes, and arrive as
// those: text that is no UTF-8 is written and read as it is. What other programs are to read goes through valid_utf8().

template <class T>
boost::json::value to_json(const T& value) {
  return JsonWriter::write(value);
}

/// Members that T does not know are ignored. The error names the path ("shares[0].node: missing"), never a value.
template <class T>
Result<T> from_json(const boost::json::value& json) {
  T value{};
  JsonReader reader;
  if (!reader.read(json, value)) return reader.error();
  return value;
}

/// Text that is nested too deep for any of our structs is refused. The error does not repeat the text.
Result<boost::json::value> parse_json(std::string_view text);

}  // namespace taas
