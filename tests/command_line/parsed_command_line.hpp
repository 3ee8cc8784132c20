#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "catch.hpp"
#include "parse/cli.hpp"

// What a command line says, beside an environment and a config file.
namespace taas::cli::parsed_command_line {

using Words = std::vector<std::string>;

/// A disk with one file.
inline FileReader file(std::string content) {
  return [content](const std::string& path) -> Result<std::string> {
    if (path == "run.toml") return content;
    return unavailable_error(path + ": no such file");
  };
}

inline Result<ParseOutcome> read(const Words& arguments, const Environment& environment = {}, std::string config = {}) {
  return parse(arguments, environment, file(std::move(config)));
}

inline plan::Options options(const Words& arguments, const Environment& environment = {}, std::string config = {}) {
  auto outcome = read(arguments, environment, std::move(config));
  if (!outcome) FAIL(outcome.error().message);
  REQUIRE(std::holds_alternative<plan::Options>(*outcome));
  return std::get<plan::Options>(*outcome);
}

inline std::string error_of(const Words& arguments, const Environment& environment = {}, std::string config = {}) {
  auto outcome = read(arguments, environment, std::move(config));
  REQUIRE(outcome.has_error());
  CHECK(outcome.error().code == ErrorCode::kUsage);
  return outcome.error().message;
}

}  // namespace taas::cli::parsed_command_line
