#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/environment/environment.hpp"
#include "ui/json_renderer.hpp"
#include "ui/live_renderer.hpp"
#include "ui/plain_renderer.hpp"
#include "ui/text/prefix.hpp"
#include "ui/victim_folding.hpp"

namespace taas::ui {
namespace {

/// Variables of those whose terminals keep what is drawn: a notebook's kernel (for `!` in a cell), and CI systems that
/// do not set CI.
constexpr const char* kKeepDrawings[] = {"JPY_PARENT_PID", "JENKINS_URL", "TEAMCITY_VERSION", "TF_BUILD"};

RendererOptions::Kind choose_kind(const plan::OutputOptions& output, const plan::Machine& machine,
                                  const Terminal& terminal) {
  if (output.json) return RendererOptions::Kind::kJson;
  auto name = value_of(machine.environment, "TERM");
  auto in_ci = value_of(machine.environment, "CI");
  bool is_log = !in_ci.empty() && in_ci != "false" && in_ci != "0";
  for (const auto* sign : kKeepDrawings) is_log |= !value_of(machine.environment, sign).empty();
  bool can_draw = terminal.same && terminal.has_size && !is_log && !name.empty() && name != "dumb";
  bool may_draw = output.color != plan::Color::kNever && output.verbosity != plan::Verbosity::kQuiet;
  return can_draw && may_draw ? RendererOptions::Kind::kLive : RendererOptions::Kind::kPlain;
}

std::string prefix_template(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  const auto& chosen = plan.options.output.prefix_template;
  return chosen.empty() ? value_of(machine.environment, "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE") : chosen;
}

std::vector<std::string> expand_prefixes(const plan::LaunchPlan& plan, const std::string& pattern) {
  std::vector<std::string> prefixes;
  if (pattern.empty()) return prefixes;
  for (const auto& rank : plan.ranks) {
    const auto& node = plan.nodes[static_cast<std::size_t>(rank.node.value)];
    prefixes.push_back(
        expand_prefix(pattern, {plan.options.rendezvous.role, rank.local_rank, rank.rank, node.hostname}));
  }
  return prefixes;
}

/// Whether the terminal's foreground is the shell's job that the keeper belongs to: agents have a process group of
/// their own. False without a controlling terminal, as after setsid: then nobody waits for this run in front of it.
bool keeper_is_in_foreground() {
  auto foreground = ::tcgetpgrp(STDOUT_FILENO);
  return foreground > 0 && foreground == ::getpgid(::getppid());
}

}  // namespace

Terminal inspect_terminal() {
  Terminal terminal;
  terminal.stdout_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  terminal.stderr_is_terminal = ::isatty(STDERR_FILENO) == 1;
  terminal.stdin_is_terminal = ::isatty(STDIN_FILENO) == 1;
  struct stat out {};
  struct stat err {};
  if (::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0) {
    terminal.same = terminal.stdout_is_terminal && terminal.stderr_is_terminal && out.st_rdev == err.st_rdev;
    terminal.one_file = terminal.same || (out.st_dev == err.st_dev && out.st_ino == err.st_ino);
  }
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) {
    terminal.has_size = size.ws_col > 0 && size.ws_row > 0;
    if (terminal.has_size) terminal.columns = size.ws_col;
  }
  return terminal;
}

RendererOptions renderer_options(const plan::LaunchPlan& plan, const plan::Machine& machine, const Terminal& terminal,
                                 Instant run_start) {
  const auto& output = plan.options.output;
  RendererOptions options;
  options.kind = choose_kind(output, machine, terminal);
  options.verbosity = output.verbosity;
  options.outputs = plan.outputs;
  if (plan.nodes_count_themselves) options.chosen = output;
  options.prefix_template = prefix_template(plan, machine);
  options.prefixes = expand_prefixes(plan, options.prefix_template);
  options.role = plan.options.rendezvous.role;
  options.max_restarts = plan.options.supervision.max_restarts;
  std::error_code gone;
  options.folder = std::filesystem::current_path(gone);
  options.data = {plan.data.count, plan.device == plan::Device::kGpu};
  options.run_start = run_start;
  auto style = [&](bool is_terminal) {
    return Style(wants_color(output.color, machine.environment, is_terminal && terminal.has_size));
  };
  options.stdout_style = style(terminal.stdout_is_terminal);
  options.stderr_style = style(terminal.stderr_is_terminal);
  options.one_file = terminal.one_file;
  options.reads_terminal = terminal.stdin_is_terminal;
  options.columns = terminal.columns;
  options.in_foreground = keeper_is_in_foreground;
  return options;
}

std::unique_ptr<Renderer> make_renderer(const RendererOptions& options, Sink& out, Sink& err) {
  std::unique_ptr<Renderer> renderer;
  switch (options.kind) {
    case RendererOptions::Kind::kJson:
      return std::make_unique<JsonRenderer>(options, out);
    case RendererOptions::Kind::kLive:
      renderer = std::make_unique<LiveRenderer>(options, out);
      break;
    case RendererOptions::Kind::kPlain:
      renderer = std::make_unique<PlainRenderer>(options, out, err);
      break;
  }
  if (options.verbosity != plan::Verbosity::kNormal) return renderer;
  return std::make_unique<VictimFolding>(options, std::move(renderer));
}

}  // namespace taas::ui
