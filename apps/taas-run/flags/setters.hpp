#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "flags/flags.hpp"
#include "flags/values.hpp"

namespace taas::cli {

/// Puts a read value where it belongs, or passes the error on.
template <class Target, class Value>
Result<> store(Target& target, Result<Value> value) {
  if (!value) return value.error();
  target = std::move(*value);
  return {};
}

/// Keeps a text as it is written, after a check.
template <class Target>
Result<> store_checked(Target& target, const std::string& text, Result<> (*check)(std::string_view)) {
  if (auto valid = check(text); !valid) return valid.error();
  target = text;
  return {};
}

/// Keeps a text that may not be empty.
inline Result<> store_filled(std::optional<std::string>& target, const std::string& text) {
  if (text.empty()) return usage_error("the value is empty");
  target = text;
  return {};
}

template <class Value>
using Choices = std::initializer_list<std::pair<std::string_view, Value>>;

/// Keeps what one of a few words stands for; any other word is refused with all of them.
template <class Value>
Result<> store_choice(Value& target, std::string_view text, Choices<Value> choices) {
  std::string words;
  for (const auto& [word, value] : choices) {
    if (word == text) return store(target, Result<Value>(value));
    words += (words.empty() ? "" : ", ") + std::string(word);
  }
  return usage_error("not one of " + words);
}

/// Remembers a flag of torchrun that means nothing here, so that it can be said.
inline Result<> note_without_effect(plan::Options& options, std::string_view flag) {
  options.without_effect.emplace_back(flag);
  return {};
}

}  // namespace taas::cli
