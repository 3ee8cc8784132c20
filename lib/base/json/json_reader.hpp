#pragma once

#include <boost/describe/enum_from_string.hpp>
#include <boost/describe/members.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/json/json_writer.hpp"

namespace taas {

/// The half of base/json/json.hpp that reads. Each read() returns whether it could; error() then says where and why
/// not.
class JsonReader {
 public:
  using Json = boost::json::value;

  bool read(const Json& json, bool& value);
  bool read(const Json& json, std::string& text);
  bool read(const Json& json, Instant& at);

  template <class Tag>
  bool read(const Json& json, Id<Tag>& id) {
    return read(json, id.value);
  }
  template <class Count, class Unit>
  bool read(const Json& json, std::chrono::duration<Count, Unit>& duration) {
    Count count{};
    if (!read(json, count)) return false;
    duration = std::chrono::duration<Count, Unit>(count);
    return true;
  }
  template <class T>
  bool read(const Json& json, std::optional<T>& value) {
    value.reset();
    return json.is_null() || read(json, value.emplace());
  }
  template <class T>
  bool read(const Json& json, std::vector<T>& values) {
    const auto* array = json.if_array();
    if (!array) return fail("not an array");
    values.clear();
    for (const auto& element : *array) {
      T value{};
      if (!read(element, value)) return fail_within_element(values.size());
      values.push_back(std::move(value));
    }
    return true;
  }
  template <class First, class Second>
  bool read(const Json& json, std::pair<First, Second>& pair) {
    const auto* array = json.if_array();
    if (!array || array->size() != 2) return fail("not an array of two");
    if (!read((*array)[0], pair.first)) return fail_within_element(0);
    return read((*array)[1], pair.second) || fail_within_element(1);
  }
  template <class T>
  bool read(const Json& json, std::map<std::string, T>& values) {
    const auto* object = json.if_object();
    if (!object) return fail("not an object");
    values.clear();
    for (const auto& [key, element] : *object) {
      if (!read(element, values[std::string(key)])) return fail_within(key);
    }
    return true;
  }
  template <class T>
  bool read(const Json& json, T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return read_number(json, value);
    } else if constexpr (std::is_enum_v<T>) {
      const auto* name = json.if_string();
      return (name && boost::describe::enum_from_string(name->c_str(), value)) || fail("not one of the known names");
    } else {
      const auto* object = json.if_object();
      return object ? read_members(*object, value) : fail("not an object");
    }
  }

  template <class T>
  bool read_members(const boost::json::object& object, T& value) {
    bool good = true;
    boost::mp11::mp_for_each<JsonMembers<T>>([&](auto member) {
      good = good && read_member(object.if_contains(member.name), member.name, value.*member.pointer);
    });
    return good;
  }

  [[nodiscard]] Error error() const;

 private:
  /// Only a number that T holds exactly is taken; of one with a fraction its millionths.
  template <class T>
  bool read_number(const Json& json, T& value) {
    if (!json.is_number()) return fail("not a number");
    boost::system::error_code status;
    value = json.to_number<T>(status);
    if constexpr (std::is_floating_point_v<T>)
      return (!status && to_millionths(value)) || fail("not a number in range");
    return !status || fail("not a number in range");
  }
  /// The parser's last digits are not exact, and what was written must say the same when it is read.
  template <class T>
  static bool to_millionths(T& value) {
    constexpr T kMost = 8e9;  // as exact as a double is
    if (!(std::abs(value) <= kMost)) return false;
    value = std::round(value * 1e6) / 1e6;
    return true;
  }
  template <class T>
  bool read_member(const Json* json, std::string_view name, T& value) {
    if (json ? read(*json, value) : fail("missing")) return true;
    return fail_within(name);
  }

  // All return false; the innermost comes first.
  bool fail(std::string_view reason);
  bool fail_within(std::string_view member);
  bool fail_within_element(std::size_t index);

  std::string path_;
  std::string reason_;
};

}  // namespace taas
