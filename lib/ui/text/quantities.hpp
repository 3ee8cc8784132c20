#pragma once

#include <cstdint>
#include <string>

namespace taas::ui {

/// "1,234,567".
std::string with_commas(double number);
/// "5.2 GB", in powers of 1000.
std::string byte_count(double bytes);

}  // namespace taas::ui
