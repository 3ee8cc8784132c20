#pragma once

#include <chrono>

#include "ui/view/footer.hpp"
#include "ui/view/narrator.hpp"
#include "ui/view/rank_lines.hpp"

namespace taas::ui {

/// For a terminal: lines scroll as they come, and below them stand a progress bar's newest state and a row about the
/// run, drawn at most ten times a second. Progress bars are thus seen in place, whichever rank draws them.
class LiveRenderer : public Renderer {
 public:
  static constexpr Duration kRedrawEvery = std::chrono::milliseconds(100);
  static constexpr Duration kClockEvery = std::chrono::seconds(1);

  /// The footer goes to `err`, or to `out` when both are one terminal.
  LiveRenderer(const RendererOptions& options, Sink& out, Sink& err);

  void show(const Event& event) override;
  [[nodiscard]] std::optional<Instant> next_deadline() const override;
  void tick(Instant now) override;
  void finish() override;
  void resize(int columns) override;
  void set_output(const PublishedOutput& output) override { narrator_.set_output(output); }

 private:
  void advance(Instant now);
  void update(const run::Event& event);
  void show_line(const OutputLine& line);
  [[nodiscard]] bool goes_elsewhere(Stream stream) const { return stream == Stream::kStdout && !one_terminal_; }
  void print(const std::vector<ShownLine>& lines);
  void print_words(const std::vector<std::string>& words);
  void draw_if_due();
  [[nodiscard]] std::string erasure();

  Narrator narrator_;
  RankLines lines_;
  Footer footer_;
  Sink& out_;
  Sink& terminal_;  // where the footer stands; the ranks' stderr goes there too
  bool one_terminal_;
  int columns_;
  Instant now_;
  Instant drawn_at_{};
  std::size_t drawn_rows_ = 0;  // that stand on the terminal now
  bool changed_ = false;        // since the footer was drawn
};

}  // namespace taas::ui
