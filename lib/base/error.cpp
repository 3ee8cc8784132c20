#include "base/error.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

namespace taas {

Error Error::with(std::string_view context) && {
  message = fmt::format("{}: {}", context, message);
  return std::move(*this);
}

Error usage_error(std::string message) { return {ErrorCode::kUsage, 0, std::move(message)}; }

Error usage_error(std::string_view value, std::string_view why) {
  return usage_error(fmt::format("{}: {}", value, why));
}

Error system_error(std::string_view what, int system_errno) {
  auto text = std::error_code(system_errno, std::generic_category()).message();
  return {ErrorCode::kSystem, system_errno, fmt::format("{}: {}", what, text)};
}

Error protocol_error(std::string message) { return {ErrorCode::kProtocol, 0, std::move(message)}; }

Error unavailable_error(std::string message) { return {ErrorCode::kUnavailable, 0, std::move(message)}; }

void throw_exception_from_error(const Error& error, const boost::source_location& where) {
  throw std::logic_error(fmt::format("unchecked error at {}:{}: {}", where.file_name(), where.line(), error.message));
}

}  // namespace taas
