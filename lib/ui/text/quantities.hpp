#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace taas::ui {

/// "0.4 s", "12.3 s", "2 min 5 s", "2 h 13 min".
std::string duration_in_words(Duration duration);

/// "1,234,567".
std::string with_commas(double number);
/// "5.2 GB", in powers of 1000.
std::string byte_count(double bytes);

}  // namespace taas::ui
