#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace taas::plan {

/// A machine to be reached by ssh.
struct Host {
  std::string user;          ///< empty: ssh decides
  std::string name;          ///< a name or an address; IPv6 without brackets
  std::optional<int> slots;  ///< most ranks there
  friend bool operator==(const Host&, const Host&) = default;
};

/// What ssh is called with: "user@name".
std::string destination(const Host& host);

/// Reads --hosts: `a,b:8,user@c,[::1]:2`. Errors name the part that is wrong, without the flag. A machine that is named
/// several times has so many slots, or the sum of them: PBS and LSF name each once a core.
Result<std::vector<Host>> parse_hosts(std::string_view text);

/// Reads a hostfile: one machine a line, as in --hosts or as `name slots=8` (also slots = 8, max_slots ignored) or, as
/// SGE writes it, `name 8 queue …`, with comments (#) and blank lines. Errors name the line.
Result<std::vector<Host>> parse_hostfile(std::string_view text);

}  // namespace taas::plan
