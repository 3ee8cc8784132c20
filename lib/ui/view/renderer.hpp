#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "ui/text/events.hpp"
#include "ui/text/sink.hpp"
#include "ui/text/style.hpp"
#include "ui/view/data_progress_view.hpp"
#include "ui/view/report.hpp"

namespace taas::ui {

/// Shows a run to its user. Owns nothing but what it still holds back; the caller feeds it every event in order, calls
/// tick() at next_deadline(), and finish() once at the end.
class Renderer {
 public:
  virtual ~Renderer() = default;

  virtual void show(const Event& event) = 0;
  [[nodiscard]] virtual std::optional<Instant> next_deadline() const = 0;
  virtual void tick(Instant now) = 0;
  virtual void finish() = 0;
  /// The terminal's width has changed.
  virtual void resize(int /*columns*/) {}
  /// For the last line of a run that ends well; to be said before the run's Finish is shown.
  virtual void set_output(const PublishedOutput& /*output*/) {}
};

/// What the renderers are told once.
struct RendererOptions {
  enum class Kind { kPlain, kLive, kJson };
  Kind kind = Kind::kPlain;
  plan::Verbosity verbosity = plan::Verbosity::kNormal;
  std::vector<plan::RankOutput> outputs;           ///< by rank
  std::optional<plan::OutputOptions> chosen = {};  ///< what they come from, where ranks are known only when nodes meet
  std::vector<std::string> prefixes;               ///< by rank, from the user's template; empty: the built-in prefix
  std::string prefix_template;  ///< what they come from, for nodes whose names are known only when they meet
  std::string role;             ///< of the ranks, for the template
  int max_restarts = 0;
  std::string folder;  ///< that the user is in, for the paths of a report
  DataProgressView::Options data;
  Instant run_start{};
  Style stdout_style;
  Style stderr_style;
  bool one_file = false;                                      ///< stdout and stderr are the same terminal, file or pipe
  bool reads_terminal = false;                                ///< standard input, which rank 0 has, is a terminal
  int columns = 80;                                           ///< of the terminal
  std::function<bool()> in_foreground = [] { return true; };  ///< the terminal is ours to draw on, and not a shell's
};

/// What the launcher's own stdout and stderr are.
struct Terminal {
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  bool same = false;  ///< both are the same one
  int columns = 80;
  bool one_file = false;  ///< both are the same file, pipe or terminal
  bool stdin_is_terminal = false;
  bool has_size = true;  ///< else nobody looks at it: its bytes go to a log, as with `tty: true` in a pod
};
Terminal inspect_terminal();

/// The options that follow from the plan, the environment and the terminal: JSON when asked for, live when stdout and
/// stderr are one terminal that can move its cursor, plain otherwise. Where only one of them is, or each is another
/// terminal, text of the other one appears on rows that the live view takes for its own; and logs of CI keep every
/// drawing, as does the output of `!taas-run` in a notebook's cell, whose terminal shows colours only.
RendererOptions renderer_options(const plan::LaunchPlan& plan, const plan::Machine& machine, const Terminal& terminal,
                                 Instant run_start);

/// The sinks must outlive the renderer.
std::unique_ptr<Renderer> make_renderer(const RendererOptions& options, Sink& out, Sink& err);

}  // namespace taas::ui
