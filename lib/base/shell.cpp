#include "base/shell.hpp"

namespace taas {

std::string quote_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

}  // namespace taas
