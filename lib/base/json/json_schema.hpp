#pragma once

#include <boost/describe/enumerators.hpp>
#include <variant>

#include "base/json/published_json.hpp"
#include "base/type_name.hpp"

namespace taas {

/// Describes what PublishedWriter writes of a type, as JSON Schema. Structs are described once, among `definitions`, by
/// their type_name(); their names therefore have to differ.
class JsonSchema {
 public:
  boost::json::object definitions;

  /// Of a value of this type.
  template <class T>
  boost::json::value of() {
    if constexpr (std::is_same_v<T, bool>) {
      return type("boolean");
    } else if constexpr (std::is_same_v<T, std::string>) {
      return type("string");
    } else if constexpr (std::is_integral_v<T>) {
      return type("integer");
    } else if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Instant>) {
      return type("number");
    } else if constexpr (std::is_enum_v<T>) {
      return of_enum<T>();
    } else {
      return of_class(static_cast<const T*>(nullptr));
    }
  }

  /// An object with the struct's members behind those given.
  template <class T>
  boost::json::object object(boost::json::object properties = {}) {
    boost::json::array required;
    for (const auto& property : properties) required.emplace_back(property.key());
    boost::mp11::mp_for_each<JsonMembers<T>>([&](auto member) {
      using Field = std::decay_t<decltype(std::declval<T>().*member.pointer)>;
      const auto name = published_name(member.name);
      if (properties.contains(name)) return;
      properties[name] = of<Field>();
      if (!std::is_same_v<Field, Instant>) required.emplace_back(name);
    });
    return {{"type", "object"}, {"properties", std::move(properties)}, {"required", std::move(required)}};
  }

  /// A line that a kind of event makes: {"t": …, "event": "rank_exited", …}. `member` is "event" or "action".
  template <class Variant>
  boost::json::array lines(std::string_view member) {
    boost::json::array all;
    add_lines(static_cast<const Variant*>(nullptr), member, all);
    return all;
  }

  /// What a subcommand prints: published_document().
  template <class T>
  void add_document(std::string_view name) {
    definitions[name] = object<T>({{kSchemaMember, {{"const", kJsonSchema}}}});
  }

  static boost::json::object type(std::string_view name) { return {{"type", name}}; }
  static boost::json::object reference(std::string_view name) { return {{"$ref", "#/$defs/" + std::string(name)}}; }

 private:
  template <class T>
  static boost::json::object of_enum() {
    boost::json::array names;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
        [&](auto enumerator) { names.emplace_back(snake_case(enumerator.name)); });
    return {{"enum", std::move(names)}};
  }
  template <class Tag>
  boost::json::object of_class(const Id<Tag>*) {
    return type("integer");
  }
  template <class Count, class Unit>
  boost::json::object of_class(const std::chrono::duration<Count, Unit>*) {
    return type("number");
  }
  template <class T>
  boost::json::object of_class(const std::optional<T>*) {
    return {{"anyOf", {of<T>(), type("null")}}};
  }
  template <class T>
  boost::json::object of_class(const std::vector<T>*) {
    return {{"type", "array"}, {"items", of<T>()}};
  }
  template <class First, class Second>
  boost::json::object of_class(const std::pair<First, Second>*) {
    return {{"type", "array"}, {"prefixItems", {of<First>(), of<Second>()}}, {"minItems", 2}, {"maxItems", 2}};
  }
  template <class T>
  boost::json::object of_class(const std::map<std::string, T>*) {
    return {{"type", "object"}, {"additionalProperties", of<T>()}};
  }
  template <class T>
  boost::json::object of_class(const T*) {
    const auto& name = type_name<T>();
    if (!definitions.contains(name)) {
      definitions[name] = nullptr;  // one that contains itself is described once, too
      definitions[name] = object<T>();
    }
    return reference(name);
  }
  template <class... Ts>
  void add_lines(const std::variant<Ts...>*, std::string_view member, boost::json::array& all) {
    (all.push_back(object<Ts>({{"t", type("number")}, {member, {{"const", type_name<Ts>()}}}})), ...);
  }
};

}  // namespace taas
