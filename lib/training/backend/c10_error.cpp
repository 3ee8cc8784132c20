#include "training/backend/c10_error.hpp"

#include <algorithm>

namespace taas {

std::string one_line(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours ? ours->what_without_backtrace() : error.what();
  // Some messages of libtorch carry the C++ stack trace in their text.
  text = text.substr(0, text.find("\nException raised from"));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace taas
