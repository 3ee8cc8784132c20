#pragma once

#include <string>

namespace taas {

/// A text that a shell reads as this one word, whatever is in it: in single quotes.
std::string quote_for_shell(const std::string& word);

}  // namespace taas
