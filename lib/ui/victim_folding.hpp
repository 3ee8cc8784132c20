#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ui/view/rank_lines.hpp"
#include "ui/view/renderer.hpp"

namespace taas::ui {

/// In front of another renderer: a rank that only lost its peer gets one line in place of its traceback, which would
/// push what happened out of sight. So the traceback of a lost peer, and what the rank says on stderr after it, is held
/// back until the report says who failed; the rank's log has it. Every other traceback goes on at its first line that
/// says something else, and one that no failure follows after a while.
class VictimFolding : public Renderer {
 public:
  VictimFolding(const RendererOptions& options, std::unique_ptr<Renderer> then)
      : shown_(options), then_(std::move(then)) {}

  void show(const Event& event) override;
  [[nodiscard]] std::optional<Instant> next_deadline() const override;
  void tick(Instant now) override;
  void finish() override;
  void resize(int columns) override { then_->resize(columns); }
  void set_output(const PublishedOutput& output) override { then_->set_output(output); }

 private:
  struct Held {
    std::vector<OutputLine> lines;
    bool lost_peer = false;  ///< the exception itself has come; before it nothing is known
  };

  void take(const OutputLine& line);
  void release(Rank rank);
  void release_all();
  void judge(const run::Verdict& verdict);
  [[nodiscard]] std::optional<Instant> due(const Held& held) const;

  RankLines shown_;  // which ranks and streams are
  std::unique_ptr<Renderer> then_;
  std::map<Rank, Held> held_;
  bool failed_ = false;  // somebody has, so that a report will follow
};

}  // namespace taas::ui
