#include "look/look.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/json/json.hpp"
#include "command/command.hpp"
#include "look/live_runs.hpp"
#include "ui/view/look_page.hpp"
#include "ui/view/top_page.hpp"

namespace taas::cli {
namespace {

constexpr auto kWatchPause = std::chrono::seconds(2);
constexpr int kRowsOfNoTerminal = 1 << 16;
constexpr int kColumns = 200;
constexpr const char* kClear = "\x1b[H\x1b[J";

struct LookOptions {
  std::string run;
  int rank = -1;
  bool json = false;
  bool watch = false;
  bool top = false;  // a line a rank
};

std::string page(const run::LookReport& report, const LookOptions& options, const ui::Style& style) {
  if (!options.top) return ui::look_page(report, style);
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 1;
  return ui::top_page(report, style, known ? size.ws_row - 1 : kRowsOfNoTerminal, known ? size.ws_col : kColumns);
}

Result<int> show_run(const LiveRun& run, const LookOptions& options, const ui::Style& style, bool on_terminal) {
  const auto question = fmt::format(R"({{"ask":"look","rank":{}}})", options.rank);
  for (;;) {
    auto answer = ask_run(run.socket, question);
    if (!answer) return answer.error();
    const auto value = parse_json(*answer);
    const auto report = value ? from_json<run::LookReport>(*value) : Result<run::LookReport>(value.error());
    if (!report) return report.error();
    if (options.rank >= 0 && report->ranks.empty()) {
      return usage_error(fmt::format("rank {} is not running; the run has {} ranks", options.rank, report->world_size));
    }
    const bool redraw = options.watch && on_terminal && !options.json;
    const bool written =
        options.json ? print_document(*report) == 0 : print_now((redraw ? kClear : "") + page(*report, options, style));
    if (!options.watch || !written) return 0;
    std::this_thread::sleep_for(kWatchPause);
  }
}

Result<int> find_and_show(const LookOptions& options, const Environment& environment) {
  auto runs = find_live_runs(environment);
  if (!runs) return runs.error();
  auto run = choose_live_run(std::move(*runs), options.run);
  if (!run) return run.error();
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return show_run(*run, options, ui::Style(ui::wants_color(plan::Color::kAuto, environment, terminal)), terminal);
}

constexpr const char* kRunHelp =
    "The run's id, or the beginning of it; without it the newest of your runs on this machine";

}  // namespace

Result<int> look(const std::vector<std::string>& arguments, const Environment& environment) {
  LookOptions options;
  Subcommand command("look", "Shows what a run is at: whether it moves, who waits for whom, and at which line.");
  command.app.add_option("RUN", options.run, kRunHelp);
  command.app.add_option("--rank", options.rank, "All threads and processes of this rank alone")
      ->check(CLI::NonNegativeNumber);
  command.app.add_flag("--watch", options.watch, "Again every two seconds, until Ctrl-C");
  auto done = command.parse(arguments);
  if (!done) return done.error();
  options.json = command.as_json;
  return *done ? Result<int>(**done) : find_and_show(options, environment);
}

Result<int> top(const std::vector<std::string>& arguments, const Environment& environment) {
  LookOptions options;
  options.top = true;
  bool once = false;
  Subcommand command(
      "top",
      "Shows a line for each rank, again every two seconds until Ctrl-C: what it is about, how fast it is. "
      "With --json one object a line, as taas-run look has it.");
  command.app.add_option("RUN", options.run, kRunHelp);
  command.app.add_flag("--once", once, "Only once");
  auto done = command.parse(arguments);
  if (!done) return done.error();
  options.json = command.as_json;
  options.watch = !once;
  return *done ? Result<int>(**done) : find_and_show(options, environment);
}

}  // namespace taas::cli
