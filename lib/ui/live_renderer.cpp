#include "ui/live_renderer.hpp"

#include <algorithm>

namespace taas::ui {

LiveRenderer::LiveRenderer(const RendererOptions& options, Sink& out, Sink& err)
    : narrator_(options),
      lines_(options),
      footer_(options),
      out_(out),
      terminal_(options.one_terminal ? out : err),
      one_terminal_(options.one_terminal),
      columns_(options.columns),
      now_(options.run_start) {}

void LiveRenderer::show(const Event& event) {
  if (auto* line = std::get_if<OutputLine>(&event)) {
    show_line(*line);
  } else {
    if (auto* happened = std::get_if<RunEvent>(&event)) update(happened->event);
    if (auto* decided = std::get_if<RunAction>(&event)) footer_.update(decided->action);
    if (auto* news = std::get_if<DataNews>(&event)) footer_.update(news->event);
    print_words(narrator_.tell(event));
    now_ = std::max(now_, narrator_.now());
    changed_ = true;
  }
  draw_if_due();
}

std::optional<Instant> LiveRenderer::next_deadline() const {
  auto redraw = drawn_at_ + (changed_ ? kRedrawEvery : kClockEvery);
  bool has_footer = !footer_.rows(now_, columns_).empty();
  auto held = lines_.next_deadline();
  if (!has_footer && drawn_rows_ == 0) return held;
  return held ? std::min(*held, redraw) : redraw;
}

void LiveRenderer::tick(Instant now) {
  advance(now);
  print(lines_.due(now));
  if (now_ - drawn_at_ >= kClockEvery) changed_ = true;
  draw_if_due();
}

void LiveRenderer::finish() {
  print(lines_.flush());
  terminal_.write(erasure());
}

void LiveRenderer::resize(int columns) {
  columns_ = columns;
  changed_ = true;
}

void LiveRenderer::advance(Instant now) {
  now_ = std::max(now_, now);
  narrator_.advance(now);
}

void LiveRenderer::update(const run::Event& event) {
  footer_.update(event);
  if (const auto* gathered = std::get_if<run::NodesGathered>(&event)) lines_.update(*gathered);
}

void LiveRenderer::show_line(const OutputLine& line) {
  advance(line.at);
  if (!lines_.shows(line)) return;
  if (lines_.exact() && goes_elsewhere(line.stream)) return out_.write(bytes_of(line));
  if (line.progress && line.text.empty()) return;
  if (line.progress) {
    footer_.set_progress(line.rank, lines_.format({{line.rank}, line.stream, line.text}).text);
  } else {
    footer_.clear_progress(line.rank);
    print(lines_.add(line));
  }
  changed_ = true;
}

void LiveRenderer::print(const std::vector<ShownLine>& lines) {
  std::string on_terminal;
  for (const auto& line : lines) {
    if (goes_elsewhere(line.stream))
      out_.write(line.text + '\n');
    else
      on_terminal += line.text + '\n';
  }
  if (!on_terminal.empty()) terminal_.write(erasure() + on_terminal);
}

void LiveRenderer::print_words(const std::vector<std::string>& words) {
  if (words.empty()) return;
  print(lines_.flush());
  std::string text = erasure();
  for (const auto& line : words) text += line + '\n';
  terminal_.write(text);
}

void LiveRenderer::draw_if_due() {
  if (!changed_ || now_ - drawn_at_ < kRedrawEvery) return;
  auto rows = footer_.rows(now_, columns_ - 1);  // the last column stays free: no terminal wraps the row
  auto text = erasure();
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "" : "\n") + rows[i];
  if (!rows.empty()) text += '\r';
  changed_ = false;
  if (text.empty()) return;
  terminal_.write(text);
  drawn_rows_ = rows.size();
  drawn_at_ = now_;
}

/// Moves to where the footer begins and clears to the end of the screen.
std::string LiveRenderer::erasure() {
  if (drawn_rows_ == 0) return {};
  std::string text = "\r";
  for (std::size_t i = 1; i < drawn_rows_; ++i) text += "\x1b[A";
  drawn_rows_ = 0;
  changed_ = true;
  return text + "\x1b[J";
}

}  // namespace taas::ui
