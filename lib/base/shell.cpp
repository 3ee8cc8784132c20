#include "base/shell.hpp"

#include <string_view>

namespace taas {

std::string quote_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

std::string quote_for_shell(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + quote_for_shell(word);
  return line;
}

std::string as_typed(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  return quote_for_shell(word);
}

std::string as_typed(const std::vector<std::string>& words) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + as_typed(word);
  return line;
}

}  // namespace taas
