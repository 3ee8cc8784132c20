#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::cli {

/// How errors are told before a run has a console of its own: as a line on standard error, and with --json as an object
/// on standard output, too, so that who reads that finds JSON there whatever happens.
enum class ErrorForm { kText, kJson };

/// Of a command line that may not be understood: whether --json stands in it where it is the launcher's.
ErrorForm error_form(const std::vector<std::string>& arguments);

void tell(const Error& error, ErrorForm form);

/// The same; returns the exit code.
int refuse(const Error& error, ErrorForm form);

}  // namespace taas::cli
