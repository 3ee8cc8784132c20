#pragma once

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
  DataProgressView::Options data;
  Instant run_start{};
  Style stdout_style;
  Style stderr_style;
  bool one_terminal = false;  ///< stdout and stderr are the same terminal: the live view writes all to stdout
  bool one_file = false;      ///< stdout and stderr are the same terminal, file or pipe
  int columns = 80;           ///< of the terminal
};

/// What the launcher's own stdout and stderr are.
struct Terminal {
  bool stdout_is_terminal = false;
  bool stderr_is_terminal = false;
  bool same = false;  ///< both are the same one
  int columns = 80;
  bool one_file = false;  ///< both are the same file, pipe or terminal
};
Terminal inspect_terminal();

/// The options that follow from the plan, the environment and the terminal: JSON when asked for, live when stderr is a
/// terminal that can move its cursor, plain otherwise.
RendererOptions renderer_options(const plan::LaunchPlan& plan, const plan::Machine& machine, const Terminal& terminal,
                                 Instant run_start);

/// The sinks must outlive the renderer.
std::unique_ptr<Renderer> make_renderer(const RendererOptions& options, Sink& out, Sink& err);

}  // namespace taas::ui
