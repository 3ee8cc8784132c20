#include "ui/text/quantities.hpp"

#include <fmt/format.h>

#include <chrono>
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

std::string duration_in_words(Duration duration) {
  const double exact = seconds(duration);
  const auto total = std::chrono::round<std::chrono::seconds>(duration).count();
  if (exact < 59.95) return fmt::format("{:.1f} s", exact);
  if (total < 3600) return fmt::format("{} min {} s", total / 60, total % 60);
  return fmt::format("{} h {} min", total / 3600, total / 60 % 60);
}

std::string byte_count(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return unit == 0 || bytes >= 99.95 ? fmt::format("{:.0f} {}", bytes, kUnits[unit])
                                     : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

}  // namespace taas::ui
