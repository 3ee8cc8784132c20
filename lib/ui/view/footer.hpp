#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "run/looks/phases.hpp"
#include "ui/view/renderer.hpp"

namespace taas::ui {

/// "publishing 3 files, 1.2 of 4.0 GiB".
std::string publishing_in_words(const run::OutputProgress& progress);

/// What the live view's last rows say: the newest state of a progress bar, and one row about the run. Pure.
class Footer {
 public:
  explicit Footer(const RendererOptions& options);

  void update(const run::Event& event);
  void update(const run::Action& action);
  void update(const run::DataEvent& event) { data_.update(event); }
  void update(const run::RunPhase& phase, Instant at);
  void update(const run::OutputProgress& progress) { published_ = progress; }
  /// A bar's newest state, ready to be shown; only the lowest rank that draws one is kept.
  void set_progress(Rank rank, std::string text);
  /// The rank has gone on to ordinary lines.
  void clear_progress(Rank rank);

  /// The row about the run stands from its first second on, or from the start of ranks, until its end. Each fits into
  /// `columns`.
  [[nodiscard]] std::vector<std::string> rows(Instant now, int columns) const;
  /// When there will be a row for what goes on already, if nothing else happens.
  [[nodiscard]] std::optional<Instant> first_row_at() const;

 private:
  [[nodiscard]] std::string status(Instant now) const;
  [[nodiscard]] std::string stopping(Instant now) const;

  Instant run_start_;
  int max_restarts_;
  std::size_t world_size_;
  Style style_;
  bool running_ = false;
  bool gathering_ = false;  // the nodes of the first generation
  bool finished_ = false;
  bool publishing_ = false;           // the ranks have ended, what they wrote is on its way
  run::OutputProgress published_;     // how far; no files: that is not known yet
  bool stopping_ = false;             // they were told to end
  bool killed_ = false;               // likewise, for good
  std::optional<Instant> killed_at_;  // ... and when those that are left are killed
  int restarts_ = 0;
  std::set<Rank> up_;
  std::set<Rank> joined_;
  run::RunPhase phase_;
  Instant phase_since_{};
  Rank progress_rank_{-1};
  std::string progress_;
  DataProgressView data_;
};

}  // namespace taas::ui
