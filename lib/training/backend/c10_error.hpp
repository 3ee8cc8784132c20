#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <string_view>

#include "taas/error.hpp"

namespace taas {

/// The text of a libtorch error without its backtrace, on one line.
std::string one_line(const std::exception& error);

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
