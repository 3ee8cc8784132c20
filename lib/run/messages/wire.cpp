#include "run/messages/wire.hpp"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/mp11/algorithm.hpp>
#include <boost/mp11/list.hpp>
#include <optional>
#include <type_traits>
#include <vector>

#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "run/events/type_name.hpp"

namespace taas::run {

namespace {

namespace json = boost::json;

template <class Message>
std::string encode_any(const Message& message) {
  json::object object;
  std::visit(
      [&object]<class T>(const T& value) {
        object["type"] = type_name<T>();
        JsonWriter::write_members(value, object);
      },
      message);
  return json::serialize(object);
}

template <class T>
Result<T> decode_as(const json::value& object) {
  auto value = from_json<T>(object);
  if (value) return value;
  return protocol_error(fmt::format("{}.{}", type_name<T>(), value.error().message));
}

template <class Message>
Result<Message> decode_members(std::string_view type, const json::value& object) {
  std::optional<Result<Message>> message;
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, Message>>([&]<class T>(std::type_identity<T>) {
    if (!message && type == type_name<T>()) message = decode_as<T>(object);
  });
  if (message) return std::move(*message);
  return protocol_error("a message of a type that is not known here");
}

template <class Message>
Result<Message> decode_any(std::string_view text) {
  const auto value = parse_json(text);
  if (!value) return value.error();
  const auto* object = value->if_object();
  const auto* type = object ? object->if_contains("type") : nullptr;
  if (!type || !type->is_string()) return protocol_error("a message without a type");
  return decode_members<Message>(type->get_string(), *value);
}

constexpr std::size_t kMostText = 16 * 1024;
constexpr std::size_t kMostEntries = 1000;

template <class T>
void cut(T& value);

void cut(std::string& text) {
  if (text.size() > kMostText) text = text.substr(0, kMostText) + "…";
}

template <class T>
void cut(std::vector<T>& list) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (list.size() > kMostEntries) list.erase(list.begin(), list.end() - kMostEntries);
  }
  for (auto& entry : list) cut(entry);
}

template <class T>
void cut(T& value) {
  if constexpr (boost::describe::has_describe_members<T>::value) {
    boost::mp11::mp_for_each<JsonMembers<T>>([&value](auto member) { cut(value.*member.pointer); });
  }
}

}  // namespace

std::string encode(const AgentMessage& message) { return encode_any(message); }
std::string encode(const CoordinatorMessage& message) { return encode_any(message); }

Result<AgentMessage> decode_agent_message(std::string_view text) { return decode_any<AgentMessage>(text); }
Result<CoordinatorMessage> decode_coordinator_message(std::string_view text) {
  return decode_any<CoordinatorMessage>(text);
}

AgentMessage shorten(AgentMessage message) {
  std::visit([](auto& told) { cut(told); }, message);
  return message;
}

}  // namespace taas::run
