#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taas {

/// Variables of a process by name.
using Environment = std::map<std::string, std::string>;

/// Name and value of "NAME=value"; nullopt where there is no "=" or nothing before it. The views are into the text.
std::optional<std::pair<std::string_view, std::string_view>> split_assignment(std::string_view text);

/// "NAME=value" each.
std::vector<std::string> assignments(const Environment& environment);
/// The same with these set over it.
std::vector<std::string> assignments(Environment environment,
                                     const std::vector<std::pair<std::string, std::string>>& changes);

/// The variable's value where it is set, be it empty.
std::optional<std::string> find_variable(const Environment& environment, const std::string& name);

/// The variable's value; `otherwise` where it is unset or empty.
std::string value_of(const Environment& environment, const std::string& name, std::string_view otherwise = {});

}  // namespace taas
