#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "ui/view/footer.hpp"
#include "ui/view/narrator.hpp"
#include "ui/view/rank_lines.hpp"

namespace taas::ui {

/// For a terminal that is stdout and stderr at once: lines scroll as they come, and below them stand a progress bar's
/// newest state and a row about the run, drawn at most ten times a second. Progress bars are thus seen in place,
/// whichever rank draws them.
///
/// The rows below are drawn only where nothing else can stand: not while the shell has the terminal, not while a line
/// of rank 0 is unfinished and its user may be typing behind it (pdb, input()), and no more once the one rank that is
/// shown has moved the cursor itself (nested bars, rich): its bytes are passed on from then on.
class LiveRenderer : public Renderer {
 public:
  static constexpr Duration kRedrawEvery = std::chrono::milliseconds(100);
  static constexpr Duration kClockEvery = std::chrono::seconds(1);
  static constexpr Duration kAfterAnswer = std::chrono::seconds(1);  // the next question may come

  LiveRenderer(const RendererOptions& options, Sink& terminal);

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
  void look_for_answer(const OutputLine& line);
  [[nodiscard]] bool is_prompt(const OutputLine& line) const;
  void show_prompt(const OutputLine& line);
  void pass_on(const OutputLine& line);
  void print(const std::vector<ShownLine>& lines);
  void print_words(const std::vector<std::string>& words);
  [[nodiscard]] std::vector<std::string> rows() const;
  void draw_if_due();
  [[nodiscard]] std::string fresh_row();

  Narrator narrator_;
  RankLines lines_;
  Footer footer_;
  Sink& terminal_;
  bool reads_terminal_;
  std::function<bool()> in_foreground_;
  int columns_;
  Instant now_;
  Instant drawn_at_{};
  std::size_t drawn_rows_ = 0;  // that stand on the terminal now
  bool changed_ = false;        // since the footer was drawn
  bool rank_draws_ = false;     // the one rank that is shown moves the cursor
  int draws_since_prompt_ = 0;
  std::set<Stream> unfinished_;      // what rank 0 wrote last has no line end
  std::optional<Stream> at_cursor_;  // behind whose text, without a line end, the cursor stands
};

}  // namespace taas::ui
