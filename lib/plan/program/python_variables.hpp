#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace taas::plan {

/// The environment variables that a Python text sets or removes.
struct VariablesSet {
  std::vector<std::string> names;  ///< each once, in the order of the text
  bool others = false;             ///< and some whose names are not in the text
};

/// A glance, no parser: `environ["NAME"] =`, del, setdefault, pop, update, |=, putenv and unsetenv. Where it computes a
/// name, every text in quotes that looks like the name of a variable may be it; load_dotenv() reads names from a file.
VariablesSet variables_set(const std::string& text);

}  // namespace taas::plan
