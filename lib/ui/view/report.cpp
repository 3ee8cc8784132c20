#include "ui/view/report.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/text.hpp"
#include "ui/text/rank_set.hpp"

namespace taas::ui {
namespace {

std::string count_of_ranks(const std::vector<Rank>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", format_rank_set(ranks));
}

std::string labelled(std::string_view label, std::string_view text, const Style& style) {
  return fmt::format("  {} {}", style.paint(Paint::kBold, fmt::format("{}:", label)), text);
}

/// What stands below the details.
std::vector<std::string> footer(const run::Verdict& verdict, const Style& style, const Restart* restart) {
  std::vector<std::string> lines;
  if (!verdict.consequences.empty()) {
    lines.push_back(labelled("also failed", count_of_ranks(verdict.consequences) + " (after it)", style));
  }
  if (!verdict.stopped.empty()) {
    auto noun = verdict.stopped.size() == 1 ? "rank" : "ranks";
    lines.push_back(labelled("stopped", fmt::format("{} {}", verdict.stopped.size(), noun), style));
  }
  if (!verdict.log_path.empty()) {
    lines.push_back(labelled(verdict.log_path.ends_with('/') ? "logs" : "log", printable(verdict.log_path), style));
  }
  if (!verdict.hint.empty()) lines.push_back(labelled("hint", printable(verdict.hint), style));
  if (restart != nullptr) {
    lines.push_back(own_line(describe(*restart, verdict.cause != run::Cause::kNodeLost), style));
  }
  return lines;
}

/// The details that fit: the beginning says where, the end says what, so the middle goes.
void add_details(const std::vector<std::string>& detail, std::size_t room, std::vector<std::string>& lines) {
  auto fits = detail.size() <= room;
  auto tail = fits ? detail.size() : room - 2;
  if (!fits) {
    lines.push_back("    " + detail.front());
    lines.push_back("    ...");
  }
  for (auto i = detail.size() - tail; i < detail.size(); ++i) lines.push_back("    " + detail[i]);
}

/// "/data/a.py" in /data is "a.py".
std::string with_relative_paths(std::string text, std::string_view folder) {
  const auto beginning = std::string(folder) + "/";
  if (beginning.size() < 3) return text;  // neither "" nor "/" is a folder to leave out
  for (auto found = text.find(beginning); found != text.npos; found = text.find(beginning, found)) {
    const bool inside = found > 0 && (std::isalnum(static_cast<unsigned char>(text[found - 1])) != 0 ||
                                      std::string_view("/._-~+@:").find(text[found - 1]) != std::string_view::npos);
    if (inside) {
      ++found;
    } else {
      text.erase(found, beginning.size());
    }
  }
  return text;
}

/// A frame of Python's is where to look; its source line, like the summary, is what somebody wrote.
run::Verdict seen_from(std::string_view folder, run::Verdict verdict) {
  for (auto* text : {&verdict.log_path, &verdict.hint}) *text = with_relative_paths(std::move(*text), folder);
  for (auto& line : verdict.detail) {
    if (line.starts_with("  File \"")) line = with_relative_paths(std::move(line), folder);
  }
  return verdict;
}

}  // namespace

std::vector<std::string> failure_report(const run::Verdict& judged, const Style& style, const Restart* restart,
                                        std::string_view folder) {
  const auto verdict = seen_from(folder, judged);
  auto below = footer(verdict, style, restart);
  bool own_fault = verdict.cause == run::Cause::kStopped;
  std::vector<std::string> lines{
      own_line(style.paint(own_fault ? Paint::kBold : Paint::kRed, printable(verdict.summary)), style)};
  add_details(verdict.detail, kMaxReportLines - 1 - below.size(), lines);
  lines.insert(lines.end(), below.begin(), below.end());
  return lines;
}

std::string describe(const Restart& restart, bool same_ranks) {
  auto all = restart.world_size == 1 ? "rank 0" : fmt::format("all {} ranks", restart.world_size);
  auto text = "restarting " + (same_ranks ? all : "the ranks with the nodes that are left");
  const auto pause = std::round(seconds(restart.pause) * 10) / 10;
  if (pause > 0) text += fmt::format(" in {} s", pause);
  if (restart.number > 0) text += fmt::format(", restart {} of {}", restart.number, restart.limit);
  return text;
}

std::string success_line(Duration elapsed, const PublishedOutput& output, const Style& style, std::string_view folder) {
  auto text = fmt::format("done in {:.1f} s", seconds(elapsed));
  if (output.files > 0) {
    text += fmt::format(", {} in {}", plural(static_cast<std::int64_t>(output.files), "file"),
                        printable(with_relative_paths(output.directory, folder)));
  }
  return own_line(text, style);
}

std::string own_line(std::string_view text, const Style& style) {
  return fmt::format("{} {}", style.paint(Paint::kBold, "taas-run:"), text);
}

}  // namespace taas::ui
