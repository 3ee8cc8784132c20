#include "run/messages/shorten.hpp"

#include <string>
#include <type_traits>
#include <vector>

#include "base/json/json_writer.hpp"

namespace taas::run {
namespace {

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

AgentMessage shorten(AgentMessage message) {
  std::visit([](auto& told) { cut(told); }, message);
  return message;
}

}  // namespace taas::run
