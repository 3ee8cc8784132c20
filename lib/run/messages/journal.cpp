#include "run/messages/journal.hpp"

#include <boost/describe/enum_to_string.hpp>
#include <boost/describe/members.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/mp11/algorithm.hpp>
#include <cctype>
#include <type_traits>

#include "base/text.hpp"
#include "base/utf8.hpp"
#include "run/events/type_name.hpp"

namespace taas::run {
namespace {

namespace json = boost::json;

/// Turns described values into JSON.
class Writer {
 public:
  explicit Writer(Instant run_start) : run_start_(run_start) {}

  [[nodiscard]] json::value write(Instant at) const { return seconds(at - run_start_); }
  [[nodiscard]] json::value write(Duration duration) const { return seconds(duration); }
  [[nodiscard]] json::value write(const std::string& text) const { return json::string(valid_utf8(text)); }

  template <class Tag>
  [[nodiscard]] json::value write(Id<Tag> id) const {
    return id.value;
  }

  template <class T>
  [[nodiscard]] json::value write(const std::vector<T>& values) const {
    json::array array;
    for (const auto& value : values) array.push_back(write(value));
    return array;
  }

  template <class T>
  [[nodiscard]] json::value write(const T& value) const {
    if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return json::string(snake_case(boost::describe::enum_to_string(value, "unknown")));
    } else {
      json::object object;
      write_members(value, object);
      return object;
    }
  }

  /// An instant that is not set is left out.
  template <class T>
  void write_members(const T& value, json::object& object) const {
    using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
    boost::mp11::mp_for_each<Members>([&](auto member) {
      const auto& field = value.*member.pointer;
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, Instant>) {
        if (field == Instant{}) return;
      }
      object[member.name] = write(field);
    });
  }

 private:
  Instant run_start_;
};

template <class AnyEvent>
std::string line_of(const AnyEvent& event, Instant run_start) {
  Writer writer(run_start);
  auto line = std::visit(
      [&](const auto& happened) {
        json::object object{{"t", writer.write(happened.at)}, {"event", type_name<std::decay_t<decltype(happened)>>()}};
        writer.write_members(happened, object);
        object.erase("at");
        return object;
      },
      event);
  return json::serialize(line);
}

}  // namespace

std::string journal_line(const Event& event, Instant run_start) { return line_of(event, run_start); }
std::string journal_line(const DataEvent& event, Instant run_start) { return line_of(event, run_start); }

std::string journal_line(const Action& action, Instant run_start) {
  Writer writer(run_start);
  auto line = std::visit(
      [&](const auto& decided) {
        json::object object{{"action", type_name<std::decay_t<decltype(decided)>>()}};
        writer.write_members(decided, object);
        return object;
      },
      action);
  return json::serialize(line);
}

}  // namespace taas::run
