#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <string_view>

namespace taas {

/// What kind of failure this is, so that a caller can choose what to do (the exit code, say) without reading the text.
enum class ErrorCode {
  kUsage,          ///< the user asked for something that cannot be: exit code 2
  kSystem,         ///< a system call failed; `system_errno` says why
  kProtocol,       ///< a peer sent something outside the protocol
  kUnavailable,    ///< something that is needed is missing or already taken
  kCannotExecute,  ///< the program: exit code 127 where `system_errno` is ENOENT, 126 otherwise
};

/// A failure by value. The message is lower-case, names the path or value, and says what to do next where that is
/// known.
struct Error {
  ErrorCode code = ErrorCode::kSystem;
  int system_errno = 0;
  std::string message;

  /// The same error with what was being done in front: "context: message".
  Error with(std::string_view context) &&;
};

/// A value or an Error; the launcher side reports every expected failure this way and throws nothing.
template <class T = void>
using Result = boost::system::result<T, Error>;

Error usage_error(std::string message);
/// Message is "<value>: <why>".
Error usage_error(std::string_view value, std::string_view why);
/// Message is "<what>: <text of the errno>".
Error system_error(std::string_view what, int system_errno);
Error protocol_error(std::string message);
Error unavailable_error(std::string message);

/// Called by Result::value() on an error: our own mistake, since value() is only for results already checked.
[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

}  // namespace taas
