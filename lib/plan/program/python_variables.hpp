#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace taas::plan {

/// The environment variables that a Python text sets or removes, each once, in the order of the text. A glance, no
/// parser: `environ["NAME"] =`, del, setdefault, pop, update, |=, putenv and unsetenv. Where it computes a name, every
/// text in quotes that looks like the name of a variable may be it.
std::vector<std::string> variables_set(const std::string& text);

}  // namespace taas::plan
