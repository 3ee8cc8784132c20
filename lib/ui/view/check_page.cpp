#include "ui/view/check_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace taas::ui {
namespace {

std::string line(const run::Finding& finding, std::size_t nodes, const Style& style) {
  const bool is_error = finding.severity == run::Severity::kError;
  const auto word = is_error ? style.paint(Paint::kRed, "error") : style.paint(Paint::kYellow, "warning");
  return fmt::format("{}: {}\n", word, printable(run::line_of(finding, nodes)));
}

/// "torch 2.9.1, Python 3.11.2", of the first node that has any.
std::string versions(const run::CheckReport& report) {
  for (const auto& node : report.nodes) {
    const auto& program = node.facts.program;
    if (program.python.empty()) continue;
    auto text = fmt::format(", Python {}", program.python);
    if (!program.torch.empty()) text += fmt::format(", torch {}", program.torch);
    return text;
  }
  return {};
}

std::string conclusion(const run::CheckReport& report, const Style& style) {
  int gpus = 0;
  for (const auto& node : report.nodes) gpus += node.makes_data ? 0 : node.facts.gpus.visible;
  const auto machines = std::ranges::count(report.nodes, true, &run::ExaminedNode::makes_data);
  const auto nodes = static_cast<std::int64_t>(report.nodes.size()) - machines;
  const auto errors = std::ranges::count(report.findings, run::Severity::kError, &run::Finding::severity);
  const auto warnings = static_cast<std::ptrdiff_t>(report.findings.size()) - errors;
  auto judged = errors > 0 ? style.paint(Paint::kRed, plural(errors, "error")) : style.paint(Paint::kGreen, "no error");
  if (warnings > 0) judged += fmt::format(", {}", plural(warnings, "warning"));
  if (report.nodes.empty()) return fmt::format("check: {}\n", judged);
  const auto beside = machines > 0 ? fmt::format(" and {}", plural(machines, "CPU machine")) : std::string();
  return fmt::format("check: {} on {} with {}{}{}\n", judged, plural(nodes, "node"), plural(gpus, "GPU"), beside,
                     versions(report));
}

}  // namespace

std::string check_page(const run::CheckReport& report, const Style& style) {
  std::string text;
  for (const auto& finding : report.findings) text += line(finding, report.nodes.size(), style);
  return text + conclusion(report, style);
}

}  // namespace taas::ui
