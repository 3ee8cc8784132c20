#include "ui/view/rank_lines.hpp"

#include <algorithm>
#include <utility>

#include "base/ranks/rank_placement.hpp"
#include "plan/streams.hpp"
#include "ui/text/line_assembler.hpp"
#include "ui/text/prefix.hpp"

namespace taas::ui {
namespace {

std::size_t count_shown(const std::vector<plan::RankOutput>& outputs) {
  return static_cast<std::size_t>(std::count_if(outputs.begin(), outputs.end(), [](const plan::RankOutput& output) {
    return output.stdout_on_console || output.stderr_on_console;
  }));
}

}  // namespace

std::string bytes_of(const OutputLine& line) {
  return line.raw ? *line.raw : line.text + std::string(usual_end(line.progress, line.open));
}

RankLines::RankLines(const RendererOptions& options)
    : outputs_(options.outputs),
      chosen_(options.chosen),
      prefixes_(options.prefixes),
      prefix_template_(options.prefix_template),
      role_(options.role),
      shown_ranks_(count_shown(options.outputs)),
      stdout_style_(options.stdout_style),
      stderr_style_(options.stderr_style),
      folding_({.shown_ranks = shown_ranks_}) {}

void RankLines::update(const run::NodesGathered& gathered) {
  if (gathered.node_names.empty()) return;
  auto ranks = place_ranks(share_ranks(gathered.node_of_rank));
  if (chosen_) choose_streams(ranks);
  if (prefix_template_.empty()) return;
  prefixes_.resize(std::max(prefixes_.size(), ranks.size()));
  for (const auto& rank : ranks) {
    auto node = static_cast<std::size_t>(rank.node.value);
    if (node >= gathered.node_names.size()) continue;
    PrefixFields fields{role_, rank.local_rank, rank.rank, gathered.node_names[node]};
    prefixes_[static_cast<std::size_t>(rank.rank.value)] = expand_prefix(prefix_template_, fields);
  }
}

void RankLines::choose_streams(const std::vector<RankPlace>& ranks) {
  auto outputs = plan::decide_streams(*chosen_, ranks);
  if (!outputs) return;  // the plan has read these options before
  outputs_ = std::move(*outputs);
  shown_ranks_ = count_shown(outputs_);
  folding_.set_shown_ranks(shown_ranks_);
}

bool RankLines::shows(const OutputLine& line) const {
  auto rank = static_cast<std::size_t>(line.rank.value);
  if (rank >= outputs_.size()) return false;
  return line.stream == Stream::kStdout ? outputs_[rank].stdout_on_console : outputs_[rank].stderr_on_console;
}

std::vector<ShownLine> RankLines::add(const OutputLine& line) {
  if (!shows(line)) return {};
  bool was_open = std::exchange(open_[{line.rank, line.stream}], line.open);
  if (was_open && line.text.empty()) return {};  // nothing but the end of a line that stands there
  if (shown_ranks_ == 1 || !prefixes_.empty()) return {format(FoldedLine{{line.rank}, line.stream, line.text})};
  return format(folding_.add(line));
}

ShownLine RankLines::format(const FoldedLine& line) const {
  const auto& style = line.stream == Stream::kStdout ? stdout_style_ : stderr_style_;
  auto rank = line.ranks.front();
  std::string prefix;
  if (!prefixes_.empty()) {
    prefix = prefixes_[static_cast<std::size_t>(rank.value)];
  } else if (shown_ranks_ > 1) {
    prefix = rank_prefix(line.ranks);
  }
  return {line.stream, style.paint_rank(rank, prefix) + line.text};
}

std::vector<ShownLine> RankLines::format(const std::vector<FoldedLine>& lines) const {
  std::vector<ShownLine> shown;
  shown.reserve(lines.size());
  for (const auto& line : lines) shown.push_back(format(line));
  return shown;
}

}  // namespace taas::ui
