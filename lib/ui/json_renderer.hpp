#pragma once

#include "ui/view/narrator.hpp"
#include "ui/view/rank_lines.hpp"

namespace taas::ui {

/// For programs: one JSON object a line on stdout. The ranks' shown lines ("event": "output"), the launcher's messages
/// ("event": "message"), and the run's events and actions as in its journal.
class JsonRenderer : public Renderer {
 public:
  JsonRenderer(const RendererOptions& options, Sink& out);

  void show(const Event& event) override;
  [[nodiscard]] std::optional<Instant> next_deadline() const override { return std::nullopt; }
  void tick(Instant) override {}
  void finish() override {}

 private:
  [[nodiscard]] std::string line_of(const OutputLine& line) const;
  [[nodiscard]] std::string line_of(const Message& message) const;

  void judge_data();

  RankLines lines_;
  plan::Verbosity verbosity_;
  Instant run_start_;
  DataProgressView data_;
  Instant data_told_;  // when data delivery said something last
  Sink& out_;
};

}  // namespace taas::ui
