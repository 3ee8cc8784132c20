#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "plan/options/options.hpp"

namespace taas::ui {

/// Whether to colour what goes to one descriptor: flag, then NO_COLOR, CLICOLOR_FORCE, CLICOLOR, TERM=dumb, then
/// whether it is a terminal.
bool wants_color(plan::Color flag, const std::map<std::string, std::string>& environment, bool is_terminal);

enum class Paint { kBold, kDim, kRed, kYellow, kCyan, kGreen };

/// Paints text, or leaves it as it is when there is to be no colour.
class Style {
 public:
  explicit Style(bool colored = false) : colored_(colored) {}

  [[nodiscard]] bool colored() const { return colored_; }
  [[nodiscard]] std::string paint(Paint paint, std::string_view text) const;
  /// Neighbouring ranks get different colours.
  [[nodiscard]] std::string paint_rank(Rank rank, std::string_view text) const;

 private:
  bool colored_;
};

}  // namespace taas::ui
