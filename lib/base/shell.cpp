#include "base/shell.hpp"

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

}  // namespace taas
