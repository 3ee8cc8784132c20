#include "ui/text/line_assembler.hpp"

#include <algorithm>
#include <utility>

#include "ui/text/utf8.hpp"

namespace taas::ui {

std::string_view usual_end(bool progress, bool open) { return open ? "" : progress ? "\r" : "\n"; }

std::vector<AssembledLine> LineAssembler::add(std::string_view bytes) {
  std::vector<AssembledLine> lines;
  while (!bytes.empty()) {
    if (std::exchange(carriage_return_, false)) {
      if (bytes.front() == '\n') {
        end_line("\r\n", lines);
        bytes.remove_prefix(1);
        continue;
      }
      draw_over(lines);
    }
    auto end = bytes.find_first_of("\r\n");
    append(bytes.substr(0, end), lines);
    if (end == std::string_view::npos) break;
    if (bytes[end] == '\n') {
      end_line("\n", lines);
    } else {
      carriage_return_ = true;
    }
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<AssembledLine> LineAssembler::flush_partial() {
  if (!has_partial()) return {};
  if (in_bar_ || carriage_return_) {
    shown_ = true;  // the text stays: it becomes a line should '\n' follow
    return {give({line_, true}, line_.size(), "")};
  }
  auto whole = whole_prefix(line_, line_.size());
  if (whole == 0) return {};
  return {give_piece(whole)};
}

std::vector<AssembledLine> LineAssembler::finish() {
  auto& text = line_.empty() ? bar_ : line_;
  std::vector<AssembledLine> lines;
  std::string_view end = carriage_return_ ? "\r" : "";
  if (!text.empty() && (text.find_first_not_of(' ') != std::string::npos || !in_bar_)) {
    lines.push_back(give({text}, line_.size(), end));
  } else if (!before_.empty() || line_.size() > given_ || carriage_return_) {
    lines.push_back(give({"", true}, line_.size(), end));
  }
  start_line();
  return lines;
}

void LineAssembler::append(std::string_view text, std::vector<AssembledLine>& lines) {
  if (text.empty()) return;
  shown_ = false;
  line_ += text;
  while (line_.size() > kMaxLine) lines.push_back(give_piece(whole_prefix(line_, kMaxLine)));
}

void LineAssembler::end_line(std::string_view end, std::vector<AssembledLine>& lines) {
  const auto& text = line_.empty() ? bar_ : line_;
  lines.push_back(give({text}, line_.size(), end));
  start_line();
}

void LineAssembler::draw_over(std::vector<AssembledLine>& lines) {
  in_bar_ = true;
  if (!line_.empty() && !shown_) {
    lines.push_back(give({line_, true}, line_.size(), "\r"));
  } else {
    before_ += '\r';
    if (before_.size() == kMaxLine) lines.push_back(give({"", true}, line_.size(), ""));
  }
  given_ = 0;
  if (line_.empty()) return;
  bar_ = std::exchange(line_, {});
  shown_ = false;
}

void LineAssembler::start_line() {
  line_.clear();
  bar_.clear();
  before_.clear();
  given_ = 0;
  carriage_return_ = in_bar_ = shown_ = false;
}

AssembledLine LineAssembler::give(AssembledLine line, std::size_t size, std::string_view end) {
  bool is_text = before_.empty() && given_ == 0 && size == line.text.size();
  if (!is_text || end != usual_end(line.progress, line.open)) {
    line.raw = std::exchange(before_, {});
    if (size > given_) line.raw->append(line_, given_, size - given_);
    line.raw->append(end);
  }
  given_ = std::max(given_, size);
  return line;
}

AssembledLine LineAssembler::give_piece(std::size_t size) {
  auto piece = give({line_.substr(0, size), false, true}, size, "");
  line_.erase(0, size);
  given_ -= size;
  return piece;
}

}  // namespace taas::ui
