#include "start/refusal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "base/exit_status.hpp"
#include "base/text.hpp"
#include "command/command.hpp"
#include "command/documents.hpp"
#include "parse/boundary.hpp"

namespace taas::cli {
namespace {

constexpr std::string_view kBlanksAndMarks = " ;:,";

ErrorKind kind_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kUsage:
      return ErrorKind::kUsage;
    case ErrorCode::kProtocol:
      return ErrorKind::kProtocol;
    case ErrorCode::kUnavailable:
      return ErrorKind::kUnavailable;
    case ErrorCode::kCannotExecute:
      return error.system_errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kNotExecutable;
    case ErrorCode::kSystem:
      break;
  }
  return ErrorKind::kSystem;
}

std::string_view fix_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "change what the message names; taas-run --help all lists all options";
    case ErrorKind::kNotFound:
      return "name a file that is there, a program in PATH, or with -m a Python module";
    case ErrorKind::kNotExecutable:
      return "name a Python script or an executable";
    case ErrorKind::kSystem:
      return "change what the operating system refuses, which the message names";
    case ErrorKind::kProtocol:
    case ErrorKind::kUnavailable:
      break;
  }
  return "try again when what the message names is there";
}

int exit_code_of(ErrorKind kind) {
  if (kind == ErrorKind::kNotFound) return kNotFoundExitCode;
  return kind == ErrorKind::kNotExecutable ? kNotExecutableExitCode : kUsageExitCode;
}

/// The message has the fix at its end, for people; programs get it apart.
ErrorDocument document_of(const Error& error) {
  const auto kind = kind_of(error);
  ErrorDocument document{{kind, printable(error.message), printable(error.fix)}, exit_code_of(kind)};
  auto& [code, message, fix] = document.error;
  if (fix.empty()) {
    fix = fix_of(kind);
  } else if (message.size() > fix.size() && message.ends_with(fix)) {
    message.erase(message.size() - fix.size());
    message.erase(message.find_last_not_of(kBlanksAndMarks) + 1);
  }
  return document;
}

}  // namespace

ErrorForm error_form(const std::vector<std::string>& arguments) {
  const auto program = program_by_looks(arguments);
  const auto end = program ? arguments.begin() + static_cast<std::ptrdiff_t>(*program) : arguments.end();
  return std::find(arguments.begin(), end, "--json") == end ? ErrorForm::kText : ErrorForm::kJson;
}

/// Nothing more can be done where these take nothing.
void tell(const Error& error, ErrorForm form) {
  std::fputs(fmt::format("taas-run: {}\n", printable(error.message)).c_str(), stderr);
  if (form == ErrorForm::kJson) print_document(document_of(error));
}

int refuse(const Error& error, ErrorForm form) {
  tell(error, form);
  return exit_code_of(kind_of(error));
}

}  // namespace taas::cli
