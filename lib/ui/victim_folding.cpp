#include "ui/victim_folding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "run/verdict/peer_loss.hpp"
#include "run/verdict/traceback.hpp"
#include "ui/text/rank_set.hpp"

namespace taas::ui {
namespace {

using namespace std::chrono_literals;

constexpr auto kBurst = 200ms;  // in which Python writes a traceback
constexpr std::size_t kMostLines = 1000;
constexpr auto kPatience = 1s;  // for the stop that follows when a rank has lost its peer

bool begins_traceback(std::string_view text) { return text == "Traceback (most recent call last):"; }

/// Frames are indented; before the first exception of a chain nothing else is not.
bool is_exception(std::string_view text) { return !text.empty() && text.front() != ' '; }

}  // namespace

void VictimFolding::show(const Event& event) {
  if (const auto* line = std::get_if<OutputLine>(&event)) return take(*line);
  if (const auto* happened = std::get_if<RunEvent>(&event)) {
    if (const auto* gathered = std::get_if<run::NodesGathered>(&happened->event)) shown_.update(*gathered);
  }
  if (const auto* decided = std::get_if<RunAction>(&event)) {
    if (const auto* signal = std::get_if<run::SignalRanks>(&decided->action)) stopping_ |= signal->to_end;
    if (const auto* failure = std::get_if<run::ReportFailure>(&decided->action)) judge(failure->verdict);
    if (const auto* finish = std::get_if<run::Finish>(&decided->action)) judge(finish->verdict);
  }
  then_->show(event);
}

void VictimFolding::take(const OutputLine& line) {
  auto held = held_.find(line.rank);
  const auto text = run::without_rank_prefix(line.text);
  if (held == held_.end()) {
    const bool may_be = line.stream == Stream::kStderr && !line.open && begins_traceback(text) && shown_.shows(line);
    if (!may_be) return then_->show(line);
    held_.emplace(line.rank, Held{{line}, false, line.at});
    return;
  }
  if (line.stream == Stream::kStdout) return then_->show(line);
  held->second.lines.push_back(line);
  if (held->second.lines.size() > kMostLines) return release(line.rank);
  if (held->second.lost_peer || line.open || !is_exception(text)) return;
  if (!run::tells_of_lost_peer(text)) return release(line.rank);
  held->second.lost_peer = true;
  held->second.since = line.at;
}

std::optional<Instant> VictimFolding::due(const Held& held) const {
  if (!held.lost_peer) return held.since + kBurst;
  return stopping_ ? std::nullopt : std::optional(held.since + kPatience);
}

std::optional<Instant> VictimFolding::next_deadline() const {
  auto next = then_->next_deadline();
  for (const auto& [rank, held] : held_) {
    auto end = due(held);
    if (end && (!next || *end < *next)) next = end;
  }
  return next;
}

void VictimFolding::tick(Instant now) {
  std::vector<Rank> overdue;
  for (const auto& [rank, held] : held_) {
    if (auto end = due(held); end && *end <= now) overdue.push_back(rank);
  }
  for (Rank rank : overdue) release(rank);
  then_->tick(now);
}

void VictimFolding::finish() {
  release_all();
  then_->finish();
}

void VictimFolding::release(Rank rank) {
  auto held = held_.extract(rank);
  for (auto& line : held.mapped().lines) then_->show(std::move(line));
}

void VictimFolding::release_all() {
  while (!held_.empty()) release(held_.begin()->first);
}

/// Who is to blame keeps its traceback, and so does everybody where nobody else is.
void VictimFolding::judge(const run::Verdict& verdict) {
  stopping_ = false;
  const bool others =
      verdict.culprit.value >= 0 || verdict.cause == run::Cause::kNodeLost || verdict.cause == run::Cause::kStopped;
  std::vector<Rank> victims;
  std::size_t lines = 0;
  Instant at{};
  for (const auto& [rank, held] : held_) {
    if (!others || !held.lost_peer || rank == verdict.culprit) continue;
    victims.push_back(rank);
    lines = std::max(lines, held.lines.size());
    at = std::max(at, held.lines.back().at);
  }
  for (Rank rank : victims) held_.erase(rank);
  release_all();
  if (victims.empty()) return;
  const auto text =
      victims.size() == 1
          ? fmt::format("rank {}: lost its peer ({} lines in its log)", victims.front().value, lines)
          : fmt::format("ranks {}: lost a peer (up to {} lines in their logs)", format_rank_set(victims), lines);
  then_->show(Message{Message::Level::kInfo, text, at});
}

}  // namespace taas::ui
