#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"

namespace taas::ui {

/// What a prefix template may name.
struct PrefixFields {
  std::string role_name;
  int local_rank = 0;
  Rank rank;
  std::string hostname;
};

/// Fills torchrun's --log-line-prefix-template: ${role_name}, ${local_rank}, ${rank}, ${hostname}, braces optional, $$
/// is a dollar sign. Other names stay as they are written.
std::string expand_prefix(std::string_view pattern, const PrefixFields& fields);

/// The built-in prefix of a line from these ranks: "[3] ", "[0-7] ".
std::string rank_prefix(const std::vector<Rank>& ranks);

}  // namespace taas::ui
