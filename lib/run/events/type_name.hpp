#pragma once

#include <boost/core/type_name.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "base/text.hpp"

namespace taas::run {

/// "start_ranks" of taas::run::StartRanks: how events, actions and messages are called in the journal and on the wire.
template <class T>
const std::string& type_name() {
  static const std::string name = [] {
    const auto full = boost::core::type_name<T>();
    return snake_case(std::string_view(full).substr(full.rfind(':') + 1));
  }();
  return name;
}

/// The same of what a variant holds.
template <class... Ts>
const std::string& alternative_name(const std::variant<Ts...>& variant) {
  return std::visit([]<class T>(const T&) -> const std::string& { return type_name<T>(); }, variant);
}

}  // namespace taas::run
