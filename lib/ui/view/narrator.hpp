#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ui/view/renderer.hpp"

namespace taas::ui {

/// Puts the launcher's own messages and what happens to the run into words for people, as verbosity wants it.
class Narrator {
 public:
  explicit Narrator(const RendererOptions& options);

  /// The lines to be shown for this event, without their ends; most events are worth none.
  std::vector<std::string> tell(const Event& event);
  /// The latest instant that any event told. Actions carry none.
  [[nodiscard]] Instant now() const { return now_; }
  void advance(Instant now) { now_ = std::max(now_, now); }
  void set_output(PublishedOutput output) { output_ = std::move(output); }

 private:
  std::vector<std::string> tell_message(const Message& message) const;
  std::vector<std::string> tell_event(const run::Event& event);
  std::vector<std::string> tell_action(const run::Action& action);
  std::vector<std::string> tell_failure(const run::ReportFailure& failure);
  std::vector<std::string> tell_untold();
  std::vector<std::string> tell_end(const run::Verdict& verdict);
  [[nodiscard]] std::vector<std::string> tell_data(bool ended_well) const;
  [[nodiscard]] std::vector<std::string> debug(Instant at, std::string_view text) const;

  plan::Verbosity verbosity_;
  Style style_;
  int world_size_;
  int max_restarts_;
  std::string folder_;
  Instant run_start_;
  Instant now_;
  PublishedOutput output_;
  DataProgressView data_;
  bool wants_data_;
  int untold_ = 0;                        // failures like the one before of which no line was shown
  std::optional<run::Verdict> reported_;  // the last failure that was reported
};

}  // namespace taas::ui
