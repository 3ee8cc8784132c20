#include "ui/plain_renderer.hpp"

namespace taas::ui {

void PlainRenderer::show(const Event& event) {
  if (auto* line = std::get_if<OutputLine>(&event)) return show_line(*line);
  if (auto* happened = std::get_if<RunEvent>(&event)) update_names(happened->event);
  auto words = narrator_.tell(event);
  if (words.empty()) return;
  print(lines_.flush());  // the launcher's words stand after what the ranks said before
  end_open_line();
  for (const auto& text : words) err_.write(text + '\n');
}

void PlainRenderer::update_names(const run::Event& event) {
  if (const auto* gathered = std::get_if<run::NodesGathered>(&event)) lines_.update(*gathered);
}

void PlainRenderer::show_line(const OutputLine& line) {
  narrator_.advance(line.at);
  if (!lines_.shows(line)) return;
  if (lines_.exact()) return pass_on(line);
  if (line.progress && line.text.empty()) return;
  if (!line.progress) {
    bars_.erase({line.rank.value, line.stream});
    print(lines_.add(line));
  } else if (progress_is_due(line)) {
    print(lines_.add(line));
  }
}

void PlainRenderer::pass_on(const OutputLine& line) {
  auto bytes = bytes_of(line);
  if (bytes.empty()) return;
  (line.stream == Stream::kStdout ? out_ : err_).write(bytes);
  if (line.stream == Stream::kStderr || one_file_) line_is_open_ = bytes.back() != '\n';
}

/// The launcher's words begin a line of their own; what the rank wrote stays as it is.
void PlainRenderer::end_open_line() {
  if (std::exchange(line_is_open_, false)) err_.write("\n");
}

bool PlainRenderer::progress_is_due(const OutputLine& line) {
  auto [bar, is_new] = bars_.try_emplace({line.rank.value, line.stream}, line.at);
  if (is_new || line.at - bar->second < kProgressEvery) return false;
  bar->second = line.at;
  return true;
}

void PlainRenderer::print(const std::vector<ShownLine>& lines) {
  for (const auto& line : lines) (line.stream == Stream::kStdout ? out_ : err_).write(line.text + '\n');
}

}  // namespace taas::ui
