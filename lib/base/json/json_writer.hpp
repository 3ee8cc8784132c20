#pragma once

#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/members.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace taas {

/// All members of a described struct that JSON holds, those of its bases first.
template <class T>
using JsonMembers = boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>;

/// The half of base/json/json.hpp that writes.
class JsonWriter {
 public:
  static boost::json::value write(bool value) { return value; }
  static boost::json::value write(const std::string& text) { return boost::json::string(text); }
  static boost::json::value write(Instant at) { return at.time_since_epoch().count(); }

  template <class Tag>
  static boost::json::value write(Id<Tag> id) {
    return id.value;
  }
  template <class Count, class Unit>
  static boost::json::value write(std::chrono::duration<Count, Unit> duration) {
    return duration.count();
  }
  template <class T>
  static boost::json::value write(const std::optional<T>& value) {
    if (!value) return nullptr;
    return write(*value);
  }
  template <class T>
  static boost::json::value write(const std::vector<T>& values) {
    boost::json::array array;
    array.reserve(values.size());
    for (const auto& value : values) array.push_back(write(value));
    return array;
  }
  template <class First, class Second>
  static boost::json::value write(const std::pair<First, Second>& pair) {
    return boost::json::array{write(pair.first), write(pair.second)};
  }
  template <class T>
  static boost::json::value write(const std::map<std::string, T>& values) {
    boost::json::object object;
    for (const auto& [key, value] : values) object[key] = write(value);
    return object;
  }
  template <class T>
  static boost::json::value write(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return boost::json::string(boost::describe::enum_to_string(value, ""));
    } else {
      boost::json::object object;
      write_members(value, object);
      return object;
    }
  }

  template <class T>
  static void write_members(const T& value, boost::json::object& object) {
    boost::mp11::mp_for_each<JsonMembers<T>>([&](auto member) { object[member.name] = write(value.*member.pointer); });
  }
};

}  // namespace taas
