#include "ui/line_assembler.hpp"

#include <utility>

#include "ui/utf8.hpp"

namespace taas::ui {

std::vector<AssembledLine> LineAssembler::add(std::string_view bytes) {
  std::vector<AssembledLine> lines;
  while (!bytes.empty()) {
    if (std::exchange(carriage_return_, false)) {
      if (bytes.front() == '\n') {
        end_line(lines);
        bytes.remove_prefix(1);
        continue;
      }
      draw_over(lines);
    }
    auto end = bytes.find_first_of("\r\n");
    append(bytes.substr(0, end), lines);
    if (end == std::string_view::npos) break;
    if (bytes[end] == '\n') {
      end_line(lines);
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
    return {{line_, true}};
  }
  auto whole = whole_prefix(line_, line_.size());
  if (whole == 0) return {};
  std::vector<AssembledLine> lines{{line_.substr(0, whole), false, true}};
  line_.erase(0, whole);
  return lines;
}

std::vector<AssembledLine> LineAssembler::finish() {
  auto& text = line_.empty() ? bar_ : line_;
  std::vector<AssembledLine> lines;
  if (text.find_first_not_of(' ') != std::string::npos || !in_bar_) {
    if (!text.empty()) lines.push_back({std::move(text), false});
  }
  start_line();
  return lines;
}

void LineAssembler::append(std::string_view text, std::vector<AssembledLine>& lines) {
  if (text.empty()) return;
  shown_ = false;
  line_ += text;
  std::size_t done = 0;
  while (line_.size() - done > kMaxLine) {
    auto rest = std::string_view(line_).substr(done);
    auto piece = rest.substr(0, whole_prefix(rest, kMaxLine));
    lines.push_back({std::string(piece), false});
    done += piece.size();
  }
  line_.erase(0, done);
}

void LineAssembler::end_line(std::vector<AssembledLine>& lines) {
  auto& text = line_.empty() ? bar_ : line_;
  lines.push_back({std::move(text), false});
  start_line();
}

void LineAssembler::draw_over(std::vector<AssembledLine>& lines) {
  in_bar_ = true;
  if (line_.empty()) return;
  if (!shown_) lines.push_back({line_, true});
  bar_ = std::exchange(line_, {});
  shown_ = false;
}

void LineAssembler::start_line() {
  line_.clear();
  bar_.clear();
  carriage_return_ = in_bar_ = shown_ = false;
}

}  // namespace taas::ui
