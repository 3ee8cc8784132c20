#include "ui/text/quantities.hpp"

#include <fmt/format.h>

#include <iterator>

namespace taas::ui {

std::string with_commas(double number) {
  auto digits = fmt::format("{:.0f}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    bool before_three = i > 0 && (digits.size() - i) % 3 == 0;
    if (before_three) text += ',';
    text += digits[i];
  }
  return text;
}

std::string byte_count(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return unit == 0 || bytes >= 99.95 ? fmt::format("{:.0f} {}", bytes, kUnits[unit])
                                     : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace taas::ui
