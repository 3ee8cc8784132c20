#pragma once

#include <string>

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::cli {

/// What somebody wants who types a word that other programs know as a command, in a line; empty: nothing is known.
std::string meant_by(const std::string& word);

/// Of a program that is not there: an error of usage that names the file beside, the command or the program shipped
/// with taas-run that was most likely meant; without one the error as it is.
Error name_what_was_meant(Error error, const plan::ProgramOptions& program);

}  // namespace taas::cli
