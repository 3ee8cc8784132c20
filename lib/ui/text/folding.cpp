#include "ui/text/folding.hpp"

#include <algorithm>

namespace taas::ui {

std::vector<FoldedLine> Folding::add(OutputLine line) {
  auto now = line.at;
  if (auto* held = find_match(line)) {
    held->line.ranks.push_back(line.rank);
  } else {
    bytes_ += line.text.size();
    held_.push_back({{{line.rank}, line.stream, std::move(line.text)}, now + options_.window});
    next_of_rank_[line.rank.value] = first_ + held_.size();
  }
  return take_ready(now);
}

std::vector<FoldedLine> Folding::due(Instant now) { return take_ready(now); }

std::vector<FoldedLine> Folding::flush() {
  std::vector<FoldedLine> lines;
  while (!held_.empty()) lines.push_back(take_front());
  return lines;
}

std::optional<Instant> Folding::next_deadline() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().deadline;
}

Folding::Held* Folding::find_match(const OutputLine& line) {
  auto& next = next_of_rank_[line.rank.value];
  for (auto number = std::max(next, first_); number < first_ + held_.size(); ++number) {
    auto& held = held_[number - first_];
    if (held.line.stream != line.stream || held.line.text != line.text) continue;
    next = number + 1;
    return &held;
  }
  return nullptr;
}

FoldedLine Folding::take_front() {
  auto line = std::move(held_.front().line);
  bytes_ -= line.text.size();
  held_.pop_front();
  ++first_;
  return line;
}

std::vector<FoldedLine> Folding::take_ready(Instant now) {
  std::vector<FoldedLine> lines;
  auto ready = [&](const Held& held) {
    return held.deadline <= now || held.line.ranks.size() >= options_.shown_ranks ||
           held_.size() > options_.max_lines || bytes_ > options_.max_bytes;
  };
  while (!held_.empty() && ready(held_.front())) lines.push_back(take_front());
  return lines;
}

}  // namespace taas::ui
