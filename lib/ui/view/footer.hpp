#pragma once

#include <set>
#include <string>
#include <vector>

#include "ui/view/renderer.hpp"

namespace taas::ui {

/// What the live view's last rows say: the newest state of a progress bar, and one row about the run. Pure.
class Footer {
 public:
  explicit Footer(const RendererOptions& options);

  void update(const run::Event& event);
  void update(const run::Action& action);
  void update(const run::DataEvent& event) { data_.update(event); }
  /// A bar's newest state, ready to be shown; only the lowest rank that draws one is kept.
  void set_progress(Rank rank, std::string text);
  /// The rank has gone on to ordinary lines.
  void clear_progress(Rank rank);

  /// No row about ranks before their first start, and none after the run's end. Each fits into `columns`.
  [[nodiscard]] std::vector<std::string> rows(Instant now, int columns) const;

 private:
  struct SilentNode {
    NodeIndex node;
    std::string name;
    Instant since;
    Duration lost_after;
  };

  void update_silence(const run::Event& event);
  [[nodiscard]] std::string silence(Instant now) const;
  [[nodiscard]] std::string status(Instant now) const;

  Instant run_start_;
  int max_restarts_;
  std::size_t world_size_;
  Style style_;
  bool running_ = false;
  bool finished_ = false;
  int restarts_ = 0;
  std::vector<SilentNode> silent_;
  std::set<Rank> up_;
  std::set<Rank> joined_;
  Rank progress_rank_{-1};
  std::string progress_;
  DataProgressView data_;
};

}  // namespace taas::ui
