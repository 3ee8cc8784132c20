#pragma once

#include <c10/util/Exception.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "taas/error.hpp"

namespace taas {

/// The text of a libtorch error without its backtrace, on one line.
inline std::string one_line(const std::exception& error) {
  const auto* ours = dynamic_cast<const c10::Error*>(&error);
  std::string text = ours ? ours->what_without_backtrace() : error.what();
  // Some messages of libtorch carry the C++ stack trace in their text.
  text = text.substr(0, text.find("\nException raised from"));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Runs `call`; an exception of libtorch comes out as a CommunicationError "<doing>: <its text>".
template <class Call>
auto communicating(std::string_view doing, Call&& call) {
  try {
    return call();
  } catch (const Exception&) {
    throw;
  } catch (const std::exception& error) {
    throw CommunicationError(std::string(doing) + ": " + one_line(error));
  }
}

}  // namespace taas
