#pragma once

#include <string>
#include <vector>

namespace taas {

/// A text that a shell reads as this one word, whatever is in it: in single quotes.
std::string quote_for_shell(const std::string& word);

/// These words with blanks between them.
std::string quote_for_shell(const std::vector<std::string>& words);

/// The same as people type it: with quotes only where a shell needs them, to be read and not to be run.
std::string as_typed(const std::string& word);
std::string as_typed(const std::vector<std::string>& words);

}  // namespace taas
