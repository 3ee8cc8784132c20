#pragma once

#include <boost/describe/enum_to_string.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/json/json_writer.hpp"
#include "base/text.hpp"
#include "base/utf8.hpp"

namespace taas {

// What other programs read: the journal, and all that --json prints (docs/for-programs.md). It is written from the same
// described structs as base/json/json.hpp writes, for readers that are not ours: texts are valid UTF-8, enums are in
// snake_case, every time is in seconds since the run's start and every duration in seconds, and what happened at a time
// has it as "t". base/json/json_schema.hpp describes exactly this.

/// Of what is published: a member that goes or means something else makes the next one, a new member does not.
inline constexpr int kJsonSchema = 1;
inline constexpr const char* kSchemaMember = "schema";

/// The member's name in JSON.
constexpr std::string_view published_name(std::string_view member) { return member == "at" ? "t" : member; }

/// In one line: numbers without exponents, with six decimals at most.
std::string published_text(const boost::json::value& json);

class PublishedWriter {
 public:
  explicit PublishedWriter(Instant run_start = {}) : run_start_(run_start) {}

  [[nodiscard]] boost::json::value write(bool value) const { return value; }
  [[nodiscard]] boost::json::value write(Instant at) const { return seconds(at - run_start_); }
  [[nodiscard]] boost::json::value write(const std::string& text) const {
    return boost::json::string(valid_utf8(text));
  }

  template <class Tag>
  [[nodiscard]] boost::json::value write(Id<Tag> id) const {
    return id.value;
  }
  template <class Count, class Unit>
  [[nodiscard]] boost::json::value write(std::chrono::duration<Count, Unit> duration) const {
    return std::chrono::duration<double>(duration).count();
  }
  template <class T>
  [[nodiscard]] boost::json::value write(const std::optional<T>& value) const {
    if (!value) return nullptr;
    return write(*value);
  }
  template <class T>
  [[nodiscard]] boost::json::value write(const std::vector<T>& values) const {
    boost::json::array array;
    array.reserve(values.size());
    for (const auto& value : values) array.push_back(write(value));
    return array;
  }
  template <class First, class Second>
  [[nodiscard]] boost::json::value write(const std::pair<First, Second>& pair) const {
    return boost::json::array{write(pair.first), write(pair.second)};
  }
  template <class T>
  [[nodiscard]] boost::json::value write(const std::map<std::string, T>& values) const {
    boost::json::object object;
    for (const auto& [key, value] : values) object[valid_utf8(key)] = write(value);
    return object;
  }
  template <class T>
  [[nodiscard]] boost::json::value write(const T& value) const {
    if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return boost::json::string(snake_case(boost::describe::enum_to_string(value, "unknown")));
    } else {
      boost::json::object object;
      write_members(value, object);
      return object;
    }
  }

  /// An instant that is not set is left out.
  template <class T>
  void write_members(const T& value, boost::json::object& object) const {
    boost::mp11::mp_for_each<JsonMembers<T>>([&](auto member) {
      const auto& field = value.*member.pointer;
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Instant>) {
        if (field == Instant{}) return;
      }
      object[published_name(member.name)] = write(field);
    });
  }

 private:
  Instant run_start_;
};

/// One line, without its end, that begins with the version of the schema: what a subcommand prints.
template <class T>
std::string published_document(const T& value) {
  boost::json::object object{{kSchemaMember, kJsonSchema}};
  PublishedWriter().write_members(value, object);
  return published_text(object);
}

}  // namespace taas
