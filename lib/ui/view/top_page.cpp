#include "ui/view/top_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "run/looks/phases.hpp"
#include "ui/text/utf8.hpp"
#include "ui/view/look_page.hpp"

namespace taas::ui {
namespace {

constexpr int kFixedRows = 4;  // headline, titles, two of what is left out or who is waited for

struct Line {
  const run::RankReport* rank = nullptr;
  std::string remark;  // why it stands out
};

std::string remark_on(const run::RankReport& rank, const run::LookReport& report, double usual) {
  if (std::ranges::find(report.culprits, rank.rank) != report.culprits.end()) return "waited for";
  const bool slow = rank.steps > 0 && usual > 0 && rank.steps_per_s < run::kStraggles * usual;
  if (slow) return "slow";
  return rank.phase.empty() ? "no answer" : "";
}

std::string memory_of(const run::RankReport& rank) {
  return rank.memory_bytes == 0 ? "" : size_in_words(rank.memory_bytes);
}

std::string steps_of(const run::RankReport& rank) {
  return rank.steps == 0 ? "" : run::rate_in_words(rank.steps_per_s);
}

std::string gpu_of(const run::RankReport& rank) {
  if (rank.gpu_percent < 0) return "";
  return fmt::format("{} %, {}", rank.gpu_percent, size_in_words(rank.gpu_bytes));
}

std::string wait_of(const run::RankReport& rank) {
  return rank.data_wait < 0 ? "" : fmt::format("{:.0f} %", 100 * rank.data_wait);
}

/// Widths of what all ranks have, so that columns stand below each other.
struct Widths {
  std::size_t node = 0, phase = 5, line = 4;
  bool steps = false;
  bool data = false;
  bool gpu = false;
};

Widths widths_of(const std::vector<Line>& lines, bool several_nodes) {
  Widths widths;
  for (const auto& [rank, remark] : lines) {
    if (several_nodes) widths.node = std::max({widths.node, rank->node.size(), std::size_t{4}});
    widths.phase = std::max(widths.phase, rank->phase.size());
    widths.line = std::max(widths.line, rank->line.size());
    widths.steps |= rank->steps > 0;
    widths.data |= rank->data_wait >= 0;
    widths.gpu |= rank->gpu_percent >= 0;
  }
  return widths;
}

std::string row(const Widths& widths, const std::string& rank, const std::string& node, const std::string& phase,
                const std::string& line, const std::string& steps, const std::string& cpu, const std::string& memory,
                const std::string& gpu, const std::string& data) {
  auto text = fmt::format("{:>5}  ", rank);
  if (widths.node > 0) text += fmt::format("{:<{}}  ", node, widths.node);
  text += fmt::format("{:<{}}  {:<{}}  ", phase, widths.phase, line, widths.line);
  if (widths.steps) text += fmt::format("{:>7}  ", steps);
  text += fmt::format("{:>5}  {:>9}", cpu, memory);
  if (widths.gpu) text += fmt::format("  {:>15}", gpu);
  return widths.data ? text + fmt::format("  {:>9}", data) : text;
}

}  // namespace

std::string top_page(const run::LookReport& report, const Style& style, int rows, int columns) {
  const auto usual = run::usual_step_rate(report.ranks);
  std::vector<Line> lines;
  for (const auto& rank : report.ranks) lines.push_back({&rank, remark_on(rank, report, usual)});
  const auto widths = widths_of(lines, report.nodes > 1);
  const auto room = static_cast<std::size_t>(std::max(rows - kFixedRows, 1));
  const auto all = lines.size();
  if (all > room) {
    std::stable_partition(lines.begin(), lines.end(), [](const Line& line) { return !line.remark.empty(); });
    lines.resize(room);
  }
  auto text = look_headline(report, style);
  const auto titles = row(widths, "rank", "node", "phase", "line", "steps/s", "cpu", "memory", "GPU", "data wait");
  text += style.paint(Paint::kDim, clip(titles, columns)) + "\n";
  for (const auto& [rank, remark] : lines) {
    auto line =
        clip(row(widths, fmt::format("{}", rank->rank.value), printable(rank->node), rank->phase, printable(rank->line),
                 steps_of(*rank), fmt::format("{:.1f}", rank->cpu), memory_of(*rank), gpu_of(*rank), wait_of(*rank)) +
                 (remark.empty() ? "" : "  " + remark),
             columns);
    text += (remark.empty() ? line : style.paint(Paint::kBold, line)) + "\n";
  }
  if (all > lines.size()) {
    text += clip(fmt::format("and {} more; those that stand out come first, and --json has all", all - lines.size()),
                 columns) +
            "\n";
  } else if (!report.text.empty()) {
    text += clip(report.text, 2 * columns) + "\n";  // the terminal breaks it
  }
  return text;
}

}  // namespace taas::ui
