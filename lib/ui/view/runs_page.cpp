#include "ui/view/runs_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.hpp"
#include "ui/text/utf8.hpp"

namespace taas::ui {
namespace {

constexpr std::size_t kLeastCommand = 20;
constexpr std::size_t kLeastEnded = 16;
constexpr std::size_t kMostEnded = 32;

/// What tells runs apart: taas-run itself and the path before it do not, and where columns are few, the program and its
/// options do more than those of taas-run.
std::string command_of(const RunSummary& run, std::size_t room) {
  if (!run.has_record) return run.id;
  auto words = run.record.command;
  if (!words.empty()) words.erase(words.begin());
  auto whole = fmt::format("{}", fmt::join(words, " "));
  if (whole.size() <= room) return whole;
  const auto program = std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
  return program == words.end() ? whole : fmt::format("{}", fmt::join(program, words.end(), " "));
}

std::string ended_of(const RunSummary& run) {
  if (run.state == "running") return "running";
  if (run.state == "lost") return "lost: its launcher was killed";
  if (run.state == "unknown") return fmt::format("not known: began on {}", run.record.host);
  // "rank 2 raised ValueError: loss is nan", where columns are few
  constexpr std::string_view kRaised = " raised ";
  const auto raised = run.ended.find(kRaised);
  if (!run.ended.starts_with("rank ") || raised == run.ended.npos) return run.ended;
  const auto rank = run.ended.substr(0, std::min(raised, run.ended.find(" on ")));
  return fmt::format("{}: {}", rank, run.ended.substr(raised + kRaised.size()));
}

Paint paint_of(const RunSummary& run) {
  if (run.state == "running") return Paint::kCyan;
  return run.exit_code == 0 ? Paint::kGreen : Paint::kRed;
}

std::string shortened(const std::string& text, std::size_t columns) {
  const auto clean = printable(text);
  const auto cut = clip(clean, static_cast<int>(columns));
  return cut.size() == clean.size() ? cut : clip(clean, static_cast<int>(columns) - 3) + "...";
}

}  // namespace

std::string short_duration(double seconds) {
  const auto total = std::lround(seconds);
  if (total >= 3600) return fmt::format("{}h {:02}m", total / 3600, total / 60 % 60);
  if (total >= 60) return fmt::format("{}m {:02}s", total / 60, total % 60);
  return seconds < 10 ? fmt::format("{:.1f} s", seconds) : fmt::format("{} s", total);
}

std::string runs_page(const std::vector<RunSummary>& runs, const Style& style, int columns) {
  std::size_t when = 4, ended = 5;
  for (const auto& run : runs) when = std::max(when, run.began.size());
  const auto left_beside = [columns](std::size_t taken) {
    const auto all = static_cast<std::size_t>(std::max(columns, 0));
    return all - std::min(taken, all);
  };
  const auto others = 5 + 2 + when + 2 + 2 + 5 + 2 + 8 + 2;
  const auto most_ended = std::clamp(left_beside(others + kLeastCommand), kLeastEnded, kMostEnded);
  for (const auto& run : runs) ended = std::max(ended, std::min(ended_of(run).size(), most_ended));
  const auto room = std::max(kLeastCommand, left_beside(others + ended));
  auto text = style.paint(Paint::kDim, fmt::format("{:>5}  {:<{}}  {:<{}}  {:>5}  {:>8}  {}", "#", "when", when,
                                                   "ended", ended, "ranks", "time", "command")) +
              "\n";
  for (const auto& run : runs) {
    const auto number = run.number > 0 ? std::to_string(run.number) : std::string("-");
    const auto how = fmt::format("{:<{}}", shortened(ended_of(run), most_ended), ended);
    text += fmt::format("{:>5}  {:<{}}  {}  {:>5}  {:>8}  {}\n", number, run.began, when,
                        style.paint(paint_of(run), how), run.ranks > 0 ? std::to_string(run.ranks) : std::string("-"),
                        short_duration(run.seconds), shortened(command_of(run, room), room));
  }
  return text;
}

}  // namespace taas::ui
