#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace taas::ui {

/// As much of a terminal as the live view uses: text, "\n" (with the driver's carriage return), "\r", cursor up, clear
/// to the end of the screen. Everything else is a failure of the test. It never scrolls.
class TerminalModel {
 public:
  void feed(std::string_view text) {
    while (!text.empty()) text.remove_prefix(take(text));
  }
  [[nodiscard]] const std::vector<std::string>& rows() const { return rows_; }
  [[nodiscard]] bool understood() const { return understood_; }

 private:
  std::size_t take(std::string_view text) {
    if (text.front() == '\n') return next_row(), 1;
    if (text.front() == '\r') return column_ = 0, 1;
    if (text.substr(0, 3) == "\x1b[A") return row_ -= row_ > 0 ? 1 : 0, 3;
    if (text.substr(0, 3) == "\x1b[J") return clear(), 3;
    if (text.front() == '\x1b') understood_ = false;
    auto& row = rows_[row_];
    if (row.size() <= column_) row.resize(column_ + 1, ' ');
    row[column_++] = text.front();
    return 1;
  }
  void next_row() {
    column_ = 0;
    if (++row_ == rows_.size()) rows_.emplace_back();
  }
  void clear() {
    rows_.resize(row_ + 1);
    rows_[row_].resize(column_);
  }

  std::vector<std::string> rows_{""};
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  bool understood_ = true;
};

/// What a user sees after all this was written.
inline std::vector<std::string> screen(std::string_view text) {
  TerminalModel terminal;
  terminal.feed(text);
  auto rows = terminal.rows();
  if (!terminal.understood()) rows.push_back("<escape sequence that the model does not know>");
  return rows;
}

}  // namespace taas::ui
