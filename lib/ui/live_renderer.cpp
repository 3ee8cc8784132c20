#include "ui/live_renderer.hpp"

#include <algorithm>
#include <utility>

#include "ui/text/utf8.hpp"

namespace taas::ui {

LiveRenderer::LiveRenderer(const RendererOptions& options, Sink& terminal)
    : narrator_(options),
      lines_(options),
      footer_(options),
      terminal_(terminal),
      reads_terminal_(options.reads_terminal),
      in_foreground_(options.in_foreground),
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
  auto held = lines_.next_deadline();
  if (rows().empty() && drawn_rows_ == 0) return held;
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
  terminal_.write(fresh_row());
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
  if (const auto* exited = std::get_if<run::RankExited>(&event); exited && exited->rank == Rank{0}) {
    unfinished_.clear();
  }
}

void LiveRenderer::show_line(const OutputLine& line) {
  advance(line.at);
  if (!lines_.shows(line)) return;
  if (!rank_draws_ && lines_.exact() && moves_cursor(line.text)) {
    terminal_.write(fresh_row());
    rank_draws_ = true;
  }
  if (rank_draws_) return pass_on(line);
  if (line.progress && line.text.empty()) return;
  if (line.progress) {
    look_for_answer(line);
    footer_.set_progress(line.rank, lines_.format({{line.rank}, line.stream, line.text}).text);
  } else {
    footer_.clear_progress(line.rank);
    if (is_prompt(line)) {
      show_prompt(line);
    } else {
      print(lines_.add(line));
    }
  }
  changed_ = true;
}

/// A bar that is drawn twice goes on, so that what was asked for before has been read. (tqdm's own thread draws a bar
/// once when its loop stands still, as in a debugger.)
void LiveRenderer::look_for_answer(const OutputLine& line) {
  if (!unfinished_.empty() && line.rank == Rank{0} && ++draws_since_prompt_ > 1) unfinished_.clear();
}

/// A piece of a line that rank 0 has not finished, or its end.
bool LiveRenderer::is_prompt(const OutputLine& line) const {
  return reads_terminal_ && line.rank == Rank{0} && (line.open || unfinished_.count(line.stream) > 0);
}

/// The cursor stays behind the piece, where its user types.
void LiveRenderer::show_prompt(const OutputLine& line) {
  print(lines_.flush());
  bool goes_on = !unfinished_.insert(line.stream).second;
  auto text = goes_on ? line.text : lines_.format({{line.rank}, line.stream, line.text}).text;
  if (!lines_.exact()) text = without_moves(text);
  bool is_its_end = !line.open;
  draws_since_prompt_ = 0;
  if (is_its_end) {
    unfinished_.erase(line.stream);
    drawn_at_ = now_ + kAfterAnswer;
  }
  if (is_its_end && text.empty() && at_cursor_ != line.stream) return;  // a row that others have ended
  auto before = at_cursor_ == line.stream ? std::string() : fresh_row();
  terminal_.write(before + text + (is_its_end ? "\n" : ""));
  at_cursor_ = is_its_end ? std::nullopt : std::optional(line.stream);
}

/// The rank has the terminal; only the launcher's words begin a row of their own.
void LiveRenderer::pass_on(const OutputLine& line) {
  auto bytes = bytes_of(line);
  if (bytes.empty()) return;
  terminal_.write(bytes);
  at_cursor_ = bytes.back() == '\n' ? std::nullopt : std::optional(line.stream);
}

void LiveRenderer::print(const std::vector<ShownLine>& lines) {
  if (lines.empty()) return;
  auto text = fresh_row();
  for (const auto& line : lines) text += (lines_.exact() ? line.text : without_moves(line.text)) + '\n';
  terminal_.write(text);
}

void LiveRenderer::print_words(const std::vector<std::string>& words) {
  if (words.empty()) return;
  print(lines_.flush());
  auto text = fresh_row();
  for (const auto& line : words) text += line + '\n';
  terminal_.write(text);
}

std::vector<std::string> LiveRenderer::rows() const {
  if (rank_draws_ || !unfinished_.empty()) return {};
  return footer_.rows(now_, columns_ - 1);  // the last column stays free: no terminal wraps the row
}

void LiveRenderer::draw_if_due() {
  if (!changed_ || now_ - drawn_at_ < kRedrawEvery) return;
  changed_ = false;
  auto rows = this->rows();
  if (rows.empty() && drawn_rows_ == 0) return;
  drawn_at_ = now_;
  if (!in_foreground_()) {
    drawn_rows_ = 0;
    return;
  }
  auto text = fresh_row();
  changed_ = false;
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "" : "\n") + rows[i];
  if (!rows.empty()) text += '\r';
  terminal_.write(text);
  drawn_rows_ = rows.size();
}

/// Moves to where the footer begins and clears to the end of the screen; behind an unfinished line, to the next row.
/// Where a shell has come to the foreground since, the cursor is behind what it wrote: the footer is left to it.
std::string LiveRenderer::fresh_row() {
  if (std::exchange(at_cursor_, std::nullopt)) return "\n";
  if (drawn_rows_ == 0) return {};
  auto above = std::exchange(drawn_rows_, 0) - 1;
  changed_ = true;
  if (!in_foreground_()) return {};
  std::string text = "\r";
  for (std::size_t i = 0; i < above; ++i) text += "\x1b[A";
  return text + "\x1b[J";
}

}  // namespace taas::ui
