#include "ui/text/style.hpp"

#include <fmt/format.h>

#include <array>

#include "base/environment/environment.hpp"

namespace taas::ui {
namespace {

std::string_view code_of(Paint paint) {
  switch (paint) {
    case Paint::kBold:
      return "1";
    case Paint::kDim:
      return "2";
    case Paint::kRed:
      return "1;31";
    case Paint::kYellow:
      return "33";
    case Paint::kCyan:
      return "36";
    case Paint::kGreen:
      return "32";
  }
  return "0";
}

}  // namespace

bool wants_color(plan::Color flag, const std::map<std::string, std::string>& environment, bool is_terminal) {
  if (flag != plan::Color::kAuto) return flag == plan::Color::kAlways;
  if (!value_of(environment, "NO_COLOR").empty()) return false;
  auto force = value_of(environment, "CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  if (value_of(environment, "CLICOLOR") == "0") return false;
  if (value_of(environment, "TERM") == "dumb") return false;
  return is_terminal;
}

std::string Style::paint(Paint paint, std::string_view text) const {
  if (!colored_ || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(paint), text);
}

std::string Style::paint_rank(Rank rank, std::string_view text) const {
  constexpr std::array<int, 6> kColors{36, 33, 32, 35, 34, 31};
  if (!colored_ || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kColors[static_cast<std::size_t>(rank.value) % kColors.size()], text);
}

}  // namespace taas::ui
