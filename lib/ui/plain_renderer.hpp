#pragma once

#include <chrono>
#include <map>
#include <utility>

#include "ui/view/narrator.hpp"
#include "ui/view/rank_lines.hpp"

namespace taas::ui {

/// For pipes, files and CI. One rank's bytes are passed on as they are. Of several ranks whole lines are shown, as they
/// come, and a progress bar every ten seconds and in its last state.
class PlainRenderer : public Renderer {
 public:
  static constexpr Duration kProgressEvery = std::chrono::seconds(10);

  PlainRenderer(const RendererOptions& options, Sink& out, Sink& err)
      : narrator_(options), lines_(options), out_(out), err_(err), one_file_(options.one_file) {}

  void show(const Event& event) override;
  [[nodiscard]] std::optional<Instant> next_deadline() const override { return lines_.next_deadline(); }
  void tick(Instant now) override { print(lines_.due(now)); }
  void finish() override { print(lines_.flush()); }
  void set_output(const PublishedOutput& output) override { narrator_.set_output(output); }

 private:
  void update_names(const run::Event& event);
  void show_line(const OutputLine& line);
  void pass_on(const OutputLine& line);
  void end_open_line();
  [[nodiscard]] bool progress_is_due(const OutputLine& line);
  void print(const std::vector<ShownLine>& lines);

  Narrator narrator_;
  RankLines lines_;
  Sink& out_;
  Sink& err_;
  bool one_file_;
  bool line_is_open_ = false;                       // where the launcher's words go
  std::map<std::pair<int, Stream>, Instant> bars_;  // when a bar began or was last shown
};

}  // namespace taas::ui
